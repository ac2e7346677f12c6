/** Asks the operators' listener of a gateway with its secret. */

/** `ops.secret` of every config folder that tests write. */
export const testSecret = 'the-secret-of-operators-in-tests'

export interface OpsOptions {
  readonly method?: string
  readonly headers?: Record<string, string>
  /** Sent by POST. */
  readonly json?: unknown
}

/** @param opsUrl such as `http://127.0.0.1:9090` */
export async function askOps(
  opsUrl: string,
  path: string,
  { method, headers = {}, json }: OpsOptions = {}
): Promise<Response> {
  return await fetch(opsUrl + path, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${testSecret}`,
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers
    },
    ...(json !== undefined && { body: JSON.stringify(json) })
  })
}

/** What the API answers at `/ops/api/PATH`; `json` is sent by POST. */
export async function opsJson(opsUrl: string, path: string, json?: unknown): Promise<any> {
  return await (await askOps(opsUrl, `/ops/api/${path}`, { json })).json()
}

/** Closes routes for an hour, unless `closing` says otherwise. */
export async function beginMaintenance(opsUrl: string, closing: object = {}): Promise<void> {
  const until = new Date(Date.now() + 3_600_000).toISOString()
  const json = { until, ...closing }
  const { status } = await askOps(opsUrl, '/ops/api/maintenance', { json })
  if (status !== 200) throw new Error(`maintenance: ${status}`)
}
