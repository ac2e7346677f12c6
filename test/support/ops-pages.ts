/** An operator with a browser without scripts: reads pages, and posts the forms that stand there. */
import { callOps, type OpsAnswer, type OpsCall, signInToOps } from './operator.ts'

const entities = /&#(\d+);/g
const unescape = (text: string) =>
  text.replaceAll(entities, (_match, code: string) => String.fromCharCode(Number(code)))

/** What a reader of a page sees, in one line. */
export function textOf(page: string): string {
  return unescape(page.replaceAll(/<[^>]*>/g, ' ').replaceAll(/\s+/g, ' '))
}

/** The hidden fields of the form whose button has this label. */
function fieldsOf(page: string, label: string): URLSearchParams {
  const form = page.split('<form').find(each => each.includes(`<h2>${label}?</h2>`)) ?? ''
  const inputs = form.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)
  return new URLSearchParams(
    Array.from(inputs, ([, name = '', value = '']) => [name, unescape(value)] as [string, string])
  )
}

export async function operatorAt(opsUrl: string, username = 'alice') {
  const { cookie } = await signInToOps(opsUrl, username)
  const call = async (path: string, options: OpsCall = {}): Promise<OpsAnswer> =>
    await callOps(opsUrl, path, { ...options, headers: { cookie, ...options.headers } })

  const post = async (path: string, fields: URLSearchParams): Promise<OpsAnswer> =>
    await call(path, {
      body: fields.toString(),
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'origin': opsUrl }
    })

  return {
    cookie,
    call,
    post,
    read: async (path: string): Promise<string> => textOf((await call(path)).text),
    /** Presses a button of a page and confirms. @returns the page to which that leads, as text */
    press: async (path: string, label: string, extra: Record<string, string> = {}) => {
      const fields = fieldsOf((await call(path)).text, label)
      for (const [name, value] of Object.entries(extra)) fields.set(name, value)
      const { status, text, headers } = await post(path, fields)
      if (status !== 303) return textOf(text)
      return textOf((await call(headers.location ?? '')).text)
    }
  }
}
