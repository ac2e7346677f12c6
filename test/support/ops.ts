/** Asks the operators' listener of a gateway as its own user may: with the secret that it left on this machine. */
import { readSecretFiles } from '../../src/admin/secret-file.ts'

export interface OpsOptions {
  readonly method?: string
  readonly headers?: Record<string, string>
  /** Sent by POST. */
  readonly json?: unknown
  readonly signal?: AbortSignal
}

/** @param opsUrl such as `http://127.0.0.1:9090` */
export async function askOps(
  opsUrl: string,
  path: string,
  { method, headers = {}, json, signal }: OpsOptions = {}
): Promise<Response> {
  return await fetch(opsUrl + path, {
    method: method ?? (json === undefined ? 'GET' : 'POST'),
    headers: {
      authorization: `Bearer ${readSecretFiles(opsUrl.slice('http://'.length))[0] ?? ''}`,
      ...(json !== undefined && { 'content-type': 'application/json' }),
      ...headers
    },
    ...(json !== undefined && { body: JSON.stringify(json) }),
    ...(signal !== undefined && { signal })
  })
}
