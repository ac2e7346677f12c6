/** An operator with a browser without scripts: signs in, reads pages, and posts the forms that stand there. */
import { errorKinds } from '../../src/errors/errors.ts'
import { type Answer, type Call, callOnce } from './call.ts'
import { password } from './sign-in.ts'

const unescape = (text: string) =>
  text.replaceAll(/&#(\d+);/g, (_match, code: string) => String.fromCharCode(Number(code)))

/** Any request to the operators' listener; JSON is sent with the page's own `Origin`. */
export async function callOps(opsUrl: string, path: string, call: Call): Promise<Answer> {
  const origin = call.json === undefined ? {} : { origin: opsUrl }
  return await callOnce(opsUrl, { ...call, path, headers: { ...origin, ...call.headers } })
}

/** Posts a form to the page. */
export async function postForm(
  opsUrl: string,
  fields: Record<string, string> | URLSearchParams,
  headers: Call['headers'] = {},
  path = '/ops/'
): Promise<Answer> {
  const type = 'application/x-www-form-urlencoded'
  return await callOps(opsUrl, path, {
    body: new URLSearchParams(fields).toString(),
    headers: { 'origin': opsUrl, 'content-type': type, ...headers }
  })
}

interface SignInOptions extends Pick<Call, 'headers'> {
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
): Promise<Answer & { readonly cookie: string }> {
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
  const error = unescape(shown)
  const code = Object.entries(errorKinds).find(([, { en }]) => en === error)?.[0]
  return { code, error }
}

/** What a reader of a page sees, in one line. */
export function textOf(page: string): string {
  return unescape(page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' '))
}

/** The hidden fields of the form whose button has this label. */
function fieldsOf(page: string, label: string): Record<string, string> {
  const form = page.split('<form').find(each => each.includes(`<h2>${label}?</h2>`)) ?? ''
  const inputs = form.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)
  return Object.fromEntries(
    Array.from(inputs, ([, name = '', value = '']) => [name, unescape(value)] as const)
  )
}

export async function operatorAt(opsUrl: string, username = 'alice') {
  const { cookie } = await signInToOps(opsUrl, username)
  const call = async (path: string, options: Call = {}): Promise<Answer> =>
    await callOps(opsUrl, path, { ...options, headers: { cookie, ...options.headers } })
  const post = async (
    path: string,
    fields: Record<string, string> | URLSearchParams
  ): Promise<Answer> => await postForm(opsUrl, fields, { cookie }, path)

  return {
    cookie,
    call,
    post,
    read: async (path: string): Promise<string> => textOf((await call(path)).text),
    /** Presses a button of a page and confirms. @returns the page to which that leads, as text */
    press: async (path: string, label: string, extra: Record<string, string> = {}) => {
      const fields = { ...fieldsOf((await call(path)).text, label), ...extra }
      const { status, text, headers } = await post(path, fields)
      return textOf(status === 303 ? (await call(headers.location ?? '')).text : text)
    }
  }
}
