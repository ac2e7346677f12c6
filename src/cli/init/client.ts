/** Requests to a back-end: few, bounded, timed out, and no redirect is followed. */
import type { AnswerTest } from '../../config/schema/response-tests.ts'
import type { UpstreamConfig } from '../../config/schema/routes.ts'
import { tryJson } from '../../json/body.ts'
import type { Json } from '../../json/values.ts'
import { type BackEnd, callWith } from '../../login/back-end-call.ts'
import { placeIn } from '../../login/login-response.ts'
import type { WholeResponse } from '../../proxy/response.ts'
import { createUpstream, type Upstream } from '../../proxy/upstream.ts'
import type { Credential } from '../../session/types.ts'
import { codeOf } from './detect.ts'
import type { Draft } from './files.ts'

/** `init` looks at a back-end, it does not crawl it. */
const maxRequests = 40
/** A back-end that is silent so often gets no further guesses. */
const maxSilent = 2
const timeoutMs = 10_000
const maxBytes = 4 * 1024 * 1024

export interface Reply {
  /** 0 without a response. */
  readonly status: number
  readonly headers: WholeResponse['headers']
  /** Where it redirects: path and query, without a slash at the end. */
  readonly place?: string | undefined
  readonly body?: Json
  readonly summary: string
}

export interface Access {
  readonly credential: Credential
  readonly as: UpstreamConfig['credential']
  readonly path?: string
}

export const anonymous: Access = { credential: {}, as: 'none' }

export const noReply = (summary: string): Reply => ({ status: 0, headers: {}, summary })

type Call = Omit<Parameters<typeof callWith>[1], 'timeoutMs' | 'purpose' | 'trail'>

export type Client = ReturnType<typeof createClient>

export function createClient(open: () => Upstream) {
  let requests = 0
  let silent = 0

  const ask = async (call: Call, { credential, as }: Access = anonymous): Promise<Reply> => {
    if (requests === maxRequests) return noReply(`not asked: ${maxRequests} requests were sent`)
    requests++
    const { base, send, close } = open()
    const backEnd: BackEnd = {
      base,
      // A list may be larger than a sign-in.
      send: request => send({ ...request, collectBytes: maxBytes }),
      config: { credential: as }
    }
    const bounds = { timeoutMs, purpose: 'request', trail: undefined } as const
    try {
      return replyOf(await callWith(backEnd, { ...call, ...bounds }, credential))
    } catch (error) {
      silent++
      const { cause = error } = error as Error
      const { code, name } = cause as NodeJS.ErrnoException
      // Not the message: it may quote a token.
      return noReply(`no response (${code ?? name})`)
    } finally {
      await close()
    }
  }

  return {
    ask,
    get: async (path: string, access?: Access) => await ask({ method: 'GET', path }, access),
    remaining: () => (silent < maxSilent ? maxRequests - requests : 0)
  }
}

export function backEndOf({ url, headers }: Pick<Draft, 'url' | 'headers'>): Upstream {
  return createUpstream({
    url: [url],
    headers,
    connectTimeout: timeoutMs,
    responseTimeout: timeoutMs,
    totalTimeout: timeoutMs,
    connections: 1,
    queue: 1,
    credential: 'none',
    identity: false
  })
}

function replyOf({ status, headers, body: bytes }: WholeResponse): Reply {
  const isRedirect = status >= 300 && status < 400
  const place = isRedirect ? placeIn(headers)?.replace(/(.)\/$/, '$1') : undefined
  const body = tryJson(bytes, headers, maxBytes) ?? bareToken(bytes.toString('utf8').trim())
  const code = codeOf(body)
  const told = body === undefined ? ', no JSON' : code && `, ${code.path} ${code.value}`
  return { status, headers, place, body, summary: `status ${status}${told ?? ''}` }
}

/** Of Laravel Sanctum's own example, and others: no JSON, no words, no markup. */
function bareToken(text: string): string | undefined {
  return /^[!-;=?-~]{16,4096}$/.test(text) ? text : undefined
}

export function isOk({ status }: Reply): boolean {
  return status >= 200 && status < 300
}

/** Whether a JSON response is a success; `known` is how others were. */
export function isSuccess(reply: Reply, known: AnswerTest = {}): boolean {
  if (!isOk(reply) || reply.body === undefined) return false
  const code = codeOf(reply.body)
  if (code === undefined) return true
  if (known.path === code.path && known.in !== undefined) return known.in.includes(code.value)
  return ![401, 403, '401', '403', false].includes(code.value)
}
