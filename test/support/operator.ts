/** A browser on the operators' page: its cookie, and the headers that a browser sends by itself. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { password } from './sign-in.ts'

export interface OpsAnswer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  // What a page would read; tests name the members they expect.
  readonly json: any
}

export interface OpsCall {
  readonly method?: string
  /** Sent by POST, as JSON, with the page's own `Origin`. */
  readonly json?: unknown
  readonly body?: string
  /** Replace those of the browser; undefined removes one. */
  readonly headers?: Record<string, string | undefined>
}

/** Any request to the operators' listener, also such as no browser sends. */
export async function callOps(
  opsUrl: string,
  path: string,
  {
    method,
    json,
    body = json === undefined ? undefined : JSON.stringify(json),
    headers = {}
  }: OpsCall
): Promise<OpsAnswer> {
  const url = new URL(opsUrl)
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest
  const sent = {
    ...(json !== undefined && { 'content-type': 'application/json', 'origin': opsUrl }),
    ...headers
  }
  const present = Object.entries(sent).filter(([, value]) => value !== undefined)
  return await new Promise((resolve, reject) => {
    const request = send(
      {
        host: url.hostname.replace(/^\[|\]$/g, ''),
        port: url.port,
        path,
        method: method ?? (body === undefined ? 'GET' : 'POST'),
        headers: Object.fromEntries(present) as Record<string, string>,
        agent: false,
        rejectUnauthorized: false
      },
      response => {
        let text = ''
        response.setEncoding('utf8')
        response.on('data', (chunk: string) => (text += chunk))
        response.on('error', reject)
        response.on('end', () => {
          let parsed: unknown
          try {
            parsed = JSON.parse(text)
          } catch {}
          const { statusCode: status = 0, headers: received } = response
          resolve({ status, headers: received, text, json: parsed })
        })
      }
    )
    request.on('error', reject)
    request.end(body)
  })
}

/** @returns the answer of the sign-in, and the cookie that it sets */
export async function signInToOps(
  opsUrl: string,
  username = 'alice',
  options: OpsCall & { readonly password?: string } = {}
): Promise<OpsAnswer & { readonly cookie: string }> {
  const answer = await callOps(opsUrl, '/ops/api/sign-in', {
    json: { username, password: options.password ?? password },
    ...options
  })
  const cookie = answer.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
  return { ...answer, cookie }
}
