/** An answer on a route with a shape: the upstream's JSON read, shaped and written, under header fields that are true of the result. */
import { hash } from 'node:crypto'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { GatewayError, toGatewayError } from '../../errors.ts'
import { liveSession } from '../hooks/session.ts'
import { CollectedBody, isEventStream } from '../../proxy/response.ts'
import { readJson, writeJson } from '../../json/body.ts'
import { bodyFields } from '../../proxy/headers.ts'
import { type Gathered, merge, type Parts, withMissing } from '../../proxy/parts.ts'
import type { Session } from '../../session/record.ts'
import { sendBody } from './send-body.ts'

export interface Shaping {
  /** May throw a GatewayError: what the back-end says in its body of how it went. */
  readonly shape: (body: unknown, session: Session | undefined) => unknown
  /** Of the body as it comes, and of what it unpacks to. */
  readonly maxShaped: number
  /** What becomes of a larger one: 502, or it passes unshaped, byte for byte. */
  readonly tooLarge: 'refuse' | 'pass'
  /** What other upstreams add before it is shaped. */
  readonly parts?: Parts
}

interface Answer {
  readonly statusCode: number
  readonly headers: Record<string, string | string[] | undefined>
  /** A stream where it is larger than `maxShaped`, or without end. */
  readonly stream: unknown
}

/** For HEAD, which has the fields of an answer whose length nobody knows before it is shaped. */
export function describeShaped(reply: FastifyReply): void {
  reply.header('content-type', 'application/json; charset=utf-8')
}

/** @throws GatewayError */
export function sendAnswer(
  request: FastifyRequest,
  reply: FastifyReply,
  { statusCode, headers, stream }: Answer,
  shaping: Shaping
): void {
  // Nobody asked for a part: it would be shaped as if it were all.
  if (statusCode === 206)
    throw new GatewayError('upstream.invalid', {
      cause: new Error('a part of an answer, which was not asked for')
    })
  if (isEventStream(headers))
    throw new GatewayError('shape.not-json', {
      cause: new Error('the response is not valid JSON: it is a stream of events')
    })
  const passAsItIs = (body: unknown) => {
    // Left out for the sake of what would have been made of it.
    for (const name of bodyFields)
      if (headers[name] !== undefined && name !== 'accept-ranges') reply.header(name, headers[name])
    reply.send(body)
  }
  let value: unknown
  try {
    if (!(stream instanceof CollectedBody)) throw new GatewayError('shape.too-large')
    value = readJson(stream.bytes, headers, shaping.maxShaped)
  } catch (error) {
    if (
      shaping.tooLarge === 'refuse' ||
      !(error instanceof GatewayError) ||
      error.code !== 'shape.too-large'
    )
      throw error
    return passAsItIs(stream instanceof CollectedBody ? stream.bytes : stream)
  }
  const { gathering } = request
  if (gathering === undefined) return sendShaped(request, reply, value, shaping)
  sendOnceGathered(request, reply, value, shaping, gathering)
}

/** Where a required part fails, whoever began the gathering tells it. */
export function sendOnceGathered(
  request: FastifyRequest,
  reply: FastifyReply,
  value: unknown,
  shaping: Shaping,
  gathering: Promise<Gathered>
): void {
  void gathering.then(
    gathered => {
      try {
        sendShaped(request, reply, value, shaping, gathered)
      } catch (error) {
        reply.send(toGatewayError(error))
      }
    },
    () => {}
  )
}

/** @throws GatewayError */
export function sendShaped(
  request: FastifyRequest,
  reply: FastifyReply,
  value: unknown,
  { shape, parts }: Shaping,
  gathered?: Gathered
): void {
  const merged =
    parts === undefined || gathered === undefined
      ? { value, missing: [] }
      : merge(value, parts, gathered)
  const send = (result: unknown) =>
    sendJson(
      request,
      reply,
      parts === undefined ? result : withMissing(result, parts, merged.missing)
    )
  const shaped = shape(merged.value, liveSession(request))
  if (shaped instanceof Promise)
    shaped.then(send).catch((error: unknown) => reply.send(toGatewayError(error)))
  else send(shaped)
}

function sendJson(request: FastifyRequest, reply: FastifyReply, value: unknown): void {
  const text = writeJson(value)
  describeShaped(reply)
  // Whoever may keep an answer may ask whether it has changed.
  const mayKeep =
    request.method === 'GET' &&
    reply.statusCode === 200 &&
    !String(reply.getHeader('cache-control') ?? 'no-store').includes('no-store')
  if (mayKeep) {
    const tag = `"${hash('sha256', text, 'base64url').slice(0, 27)}"`
    reply.header('etag', tag)
    if (namesTag(request.headers['if-none-match'], tag)) {
      return void reply.code(304).removeHeader('content-type').send()
    }
  }
  sendBody(reply, text)
}

/** RFC 9110 §13.1.2: a proxy on the way may have marked the tag as weak. */
export function namesTag(condition: string | undefined, tag: string): boolean {
  return (
    condition?.split(',').some(each => ['*', tag].includes(each.trim().replace(/^W\//, ''))) ===
    true
  )
}
