import { Readable } from 'node:stream'
import type { FastifyRequest } from 'fastify'
import { GatewayError } from '../../errors/errors.ts'
import { readJson, writeJson } from '../../json/body.ts'
import { isRecord, type Json, textOf } from '../../json/values.ts'
import { compileQuery, malformed } from '../../proxy/query.ts'
import type { Call } from '../../proxy/receiver.ts'
import { announcesBody, maxCollectedBytes, readBody } from '../../proxy/request-body.ts'
import { requestHeaders } from '../../proxy/request-headers.ts'
import type { User } from '../../shaping/own-code.d.ts'
import type { Gateway } from '../gateway.ts'
import { forwardedForOf } from '../hooks/address.ts'
import type { ForwardedRoute, Target } from './compile.ts'

export type Outgoing = Pick<Call, 'method' | 'path' | 'headers'>

/** @returns a function that throws a GatewayError `request.*` for a request that cannot go on */
export function compileOutgoing(
  { target, shaping }: ForwardedRoute,
  { config, tokenNames, sealedCookies, credentialFor }: Gateway
): (request: FastifyRequest) => Outgoing {
  const { passHeaders, passCookies = [] } = target.written
  const { upstreamName } = target
  const passSealed = passCookies.filter(name => sealedCookies.isSealed(upstreamName, name))
  const toHeaders = requestHeaders({
    identity: config.gateway.identity,
    tokenNames,
    upstream: target.upstream.config,
    credentialFor: credentialFor(upstreamName),
    passHeaders,
    passCookies: passCookies.filter(name => !passSealed.includes(name)),
    shaped: shaping !== undefined
  })
  const stripTokens = tokenNames.query?.strip
  const { reads, others } = target.query ?? {}
  const queryOfReads = reads && compileQuery(reads)
  const queryOfOthers = others && compileQuery(others)

  return request => {
    const { raw } = request
    const method = target.isReadOnly && raw.method === 'POST' ? 'GET' : request.method
    const isRead = method === 'GET' || method === 'HEAD'
    const url = raw.url ?? ''
    const mark = url.indexOf('?')
    let query = mark < 0 ? '' : url.slice(mark)
    if (stripTokens !== undefined) query = stripTokens(query)
    const toQuery = isRead ? queryOfReads : queryOfOthers
    if (toQuery !== undefined) query = toQuery(query)
    const caller = forwardedForOf(request)
    const headers = toHeaders(raw.headers, caller, bodyOf(request, target) !== undefined, isRead)
    if (passSealed.length > 0) {
      const opened = sealedCookies.open(upstreamName, raw.headers.cookie, passSealed)
      const all = [headers['cookie'] ?? [], opened].flat()
      if (all.length > 0) headers['cookie'] = all.join('; ')
    }
    return { method, path: target.rewrite.toUpstream(url) + query, headers }
  }
}

/** Where it goes to the upstream. The plugin's parsers hand on a stream, but none of reads. */
function bodyOf({ body, raw }: FastifyRequest, target: Target): Readable | undefined {
  if (target.isReadOnly) return undefined
  if (body instanceof Readable) return body
  return target.written.passGetBody === true && raw.method === 'GET' && announcesBody(raw)
    ? raw
    : undefined
}

/**
 * Mends the headers that describe a mapped body. A large body is not read but streamed.
 * @param collectBytes up to this size it is collected @throws GatewayError `request.*`
 */
export async function readOutgoingBody(
  request: FastifyRequest,
  target: Target,
  headers: Call['headers'],
  collectBytes: number
): Promise<NonNullable<Call['body']> | null> {
  const stream = bodyOf(request, target)
  if (stream === undefined) {
    if (request.body instanceof Readable) request.body.resume()
    return null
  }
  const { body: mapping, maxBody: maxBytes } = target
  const announced = headers['content-length']
  const length = announced === undefined ? undefined : Number(announced)
  const usual = length === undefined ? maxCollectedBytes : collectBytes
  const collected = mapping === undefined ? usual : Math.min(mapping.maxBytes, maxBytes)
  const body = await readBody(stream, length, { collectBytes: collected, maxBytes })
  if (Buffer.isBuffer(body)) request.clientBody = body
  if (mapping === undefined) return body
  if (body instanceof Readable) {
    body.destroy()
    throw new GatewayError('request.too-large')
  }
  // An empty body has no type.
  return body.length === 0
    ? null
    : await mapBody(body, headers, mapping, request.live?.session.identity)
}

type BodyMapping = NonNullable<Target['body']>

const contentTypes = { json: 'application/json', form: 'application/x-www-form-urlencoded' }

/** @returns the new text; mends the headers that describe it. @throws GatewayError `request.*` */
async function mapBody(
  bytes: Buffer,
  headers: Call['headers'],
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
  const [written = '', ...parameters] = String(contentType ?? '').split(';')
  const name = written.trim().toLowerCase()
  const isForm = name === contentTypes.form
  const isJson = /^application\/(?:[\w.+-]+\+)?json$/.test(name)
  if (!isForm && !isJson) throw new GatewayError('request.type')
  // Others say what the body means, as `ext` of JSON:API does.
  const kept = parameters.filter(each => !/^\s*charset\s*=/i.test(each))
  return { type: isForm ? 'form' : 'json', name: [name, ...kept].join(';') } as const
}

function readRequest(bytes: Buffer, headers: Call['headers'], maxBytes: number): Json {
  try {
    return readJson(bytes, headers, maxBytes)
  } catch (cause) {
    const isTooLarge = cause instanceof GatewayError && cause.code === 'shape.too-large'
    throw new GatewayError(isTooLarge ? 'request.too-large' : 'request.malformed', { cause })
  }
}

/** A name that comes twice has a list of its values. @throws GatewayError `request.*` */
function readForm(bytes: Buffer, headers: Call['headers']): Json {
  if (headers['content-encoding'] !== undefined) throw new GatewayError('request.type')
  const text = bytes.toString('utf8')
  const parameters = new URLSearchParams(text)
  // In another charset each letter would become this one.
  const holds = (each: string) => each.includes('\ufffd')
  if (!/%ef%bf%bd/i.test(text) && [...parameters].flat().some(holds)) {
    throw malformed('the form is not UTF-8')
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
  if (!isRecord(value)) throw malformed('the body does not fit a form')
  const form = new URLSearchParams()
  for (const [name, member] of Object.entries(value)) {
    for (const each of Array.isArray(member) ? (member as Json[]) : [member]) {
      if (each === null || each === undefined) continue
      const text = textOf(each)
      if (text === undefined) throw malformed('the body does not fit a form')
      form.append(name, text)
    }
  }
  return form.toString()
}
