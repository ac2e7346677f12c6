/** What consoles rely on in axios, which most of them send their requests with. */
import type { Page } from './driver.ts'
import { ConsoleFault } from './display.ts'

type Params = Readonly<Record<string, string | number | undefined>>

export interface AxiosRequest {
  readonly method: 'GET' | 'POST'
  readonly url: string
  readonly params?: Params
  readonly data?: unknown
  /** Fields with `null` are not sent. */
  readonly headers?: Readonly<Record<string, string | null>>
}

export const get = (url: string, params: Params = {}): AxiosRequest => ({
  method: 'GET',
  url,
  params
})
export const post = (url: string, data?: unknown): AxiosRequest => ({ method: 'POST', url, data })

export interface AxiosResponse {
  readonly status: number
  /** The parsed body; the text of a body that is not JSON. */
  readonly data: unknown
  readonly header: (name: string) => string | null
}

/** The rejection of a request whose response axios does not accept, or that got none. */
export class AxiosError extends ConsoleFault {
  readonly response: AxiosResponse | undefined

  constructor(message: string, response?: AxiosResponse) {
    super(message)
    this.response = response
  }
}

/**
 * Rejects with an `AxiosError` unless the status is 2xx, as axios does by default.
 * @param onError what the console does with the error, which goes on all the same
 */
export async function axios(
  page: Page,
  request: AxiosRequest,
  onError: (error: AxiosError) => unknown = () => {}
): Promise<AxiosResponse> {
  try {
    const response = await send(page, request)
    if (response.status >= 200 && response.status < 300) return response
    throw new AxiosError(`Request failed with status code ${response.status}`, response)
  } catch (error) {
    if (error instanceof AxiosError) await onError(error)
    throw error
  }
}

async function send(page: Page, request: AxiosRequest): Promise<AxiosResponse> {
  const { method, url, params, data, headers } = request
  const type = data === undefined ? {} : { 'content-type': 'application/json' }
  const sent = Object.entries({ accept: 'application/json, text/plain, */*', ...type, ...headers })
  try {
    const response = await page.fetch(withQuery(url, params), {
      method,
      headers: Object.fromEntries(sent.flatMap(([name, value]) => (value ? [[name, value]] : []))),
      ...(data !== undefined && { body: JSON.stringify(data) })
    })
    return {
      status: response.status,
      data: parse(await response.text()),
      header: name => response.headers.get(name)
    }
  } catch (error) {
    throw error instanceof TypeError ? new AxiosError('Network Error') : error
  }
}

function withQuery(url: string, params: Params = {}): string {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined) query.append(name, String(value))
  }
  return query.size === 0 ? url : `${url}?${query.toString()}`
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}
