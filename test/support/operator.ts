/** A browser on the operators' page: its cookie, and the headers that a browser sends by itself. */
import { request as httpRequest, type IncomingHttpHeaders } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { errorKinds } from '../../src/errors/errors.ts'
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

/** Posts a form to the page. */
export async function postForm(
  opsUrl: string,
  fields: Record<string, string>,
  headers: OpsCall['headers'] = {},
  path = '/ops/'
): Promise<OpsAnswer> {
  const type = 'application/x-www-form-urlencoded'
  return await callOps(opsUrl, path, {
    body: new URLSearchParams(fields).toString(),
    headers: { 'origin': opsUrl, 'content-type': type, ...headers }
  })
}

interface SignInOptions extends Pick<OpsCall, 'headers'> {
  readonly password?: string
}

/**
 * Signs in by the form.
 * @returns the answer, the cookie that it sets, and in `json` the operator, or the error
 */
export async function signInToOps(
  opsUrl: string,
  username = 'alice',
  { password: given = password, headers = {} }: SignInOptions = {}
): Promise<OpsAnswer & { readonly cookie: string }> {
  const fields = { act: 'sign-in', username, password: given }
  const answer = await postForm(opsUrl, fields, headers)
  const cookie = answer.headers['set-cookie']?.[0]?.split(';', 1)[0] ?? ''
  if (answer.status !== 303) return { ...answer, cookie, json: errorOf(answer.text) }
  const { json } = await callOps(opsUrl, '/ops/api/me', { headers: { ...headers, cookie } })
  return { ...answer, cookie, json }
}

/** The error that a page shows. */
function errorOf(page: string) {
  const [, shown = ''] = /role="alert">([^<]*)/.exec(page) ?? []
  const error = shown.replaceAll(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
  const code = Object.entries(errorKinds).find(([, { en }]) => en === error)?.[0]
  return { code, error }
}
