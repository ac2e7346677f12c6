/** The body for the upstream: the console's JSON or form, shaped, in the type that it wants. */
import { GatewayError } from '../errors/errors.ts'
import { readJson, writeJson } from '../json/body.ts'
import { isRecord, type Json, textOf } from '../json/values.ts'
import type { User } from '../shaping/own-code.d.ts'

type Headers = Record<string, string | string[]>

export interface BodyMapping {
  /** Of the body as it comes, and of what it unpacks to. */
  readonly maxBytes: number
  readonly shape: (body: Json, user: User | undefined) => Json
  /** The type for the upstream; the client's own without it. */
  readonly as?: 'json' | 'form' | undefined
}

const contentTypes = { json: 'application/json', form: 'application/x-www-form-urlencoded' }

/** @returns the new text; mends the headers that describe it. @throws GatewayError `request.*` */
export async function mapBody(
  bytes: Buffer,
  headers: Headers,
  { maxBytes, shape, as }: BodyMapping,
  user?: User
): Promise<string> {
  const { type, name } = typeOf(headers['content-type'])
  const value = type === 'json' ? readRequest(bytes, headers, maxBytes) : readForm(bytes, headers)
  const shaped = (await shape(value, user)) ?? null
  const target = as ?? type
  const body = target === 'json' ? writeJson(shaped) : writeForm(shaped)
  // The client's own, such as `application/merge-patch+json`; what is written is UTF-8.
  headers['content-type'] = target === type ? name : contentTypes[target]
  headers['content-length'] = String(Buffer.byteLength(body))
  delete headers['content-encoding']
  return body
}

function typeOf(contentType: string | string[] | undefined) {
  const [written = ''] = String(contentType ?? '').split(';', 1)
  const name = written.trim().toLowerCase()
  const isForm = name === contentTypes.form
  const isJson = /^application\/(?:[\w.+-]+\+)?json$/.test(name)
  if (!isForm && !isJson) throw new GatewayError('request.type')
  return { type: isForm ? 'form' : 'json', name } as const
}

function readRequest(bytes: Buffer, headers: Headers, maxBytes: number): Json {
  try {
    return readJson(bytes, headers, maxBytes)
  } catch (cause) {
    const isTooLarge = cause instanceof GatewayError && cause.code === 'shape.too-large'
    throw new GatewayError(isTooLarge ? 'request.too-large' : 'request.malformed', { cause })
  }
}

/** A name that comes twice has a list of its values. @throws GatewayError `request.*` */
function readForm(bytes: Buffer, headers: Headers): Json {
  if (headers['content-encoding'] !== undefined) throw new GatewayError('request.type')
  const text = bytes.toString('utf8')
  const parameters = new URLSearchParams(text)
  // In another charset each letter would become this one.
  const holds = (each: string) => each.includes('\ufffd')
  if (!/%ef%bf%bd/i.test(text) && [...parameters].flat().some(holds)) {
    throw new GatewayError('request.malformed', { cause: new Error('the form is not UTF-8') })
  }
  const members = Map.groupBy(parameters, ([name]) => name)
  return Object.fromEntries(
    Array.from(members, ([name, all]) => {
      const values = all.map(([, value]) => value)
      return [name, values.length === 1 ? values[0] : values]
    })
  )
}

/** @throws GatewayError `request.malformed` for what has no form: a list or text, nested objects */
function writeForm(value: Json): string {
  if (!isRecord(value)) throw noForm()
  const form = new URLSearchParams()
  for (const [name, member] of Object.entries(value)) {
    for (const each of Array.isArray(member) ? (member as Json[]) : [member]) {
      if (each === null || each === undefined) continue
      const text = textOf(each)
      if (text === undefined) throw noForm()
      form.append(name, text)
    }
  }
  return form.toString()
}

function noForm(): GatewayError {
  const cause = new Error('the body does not fit a form')
  return new GatewayError('request.malformed', { cause })
}
