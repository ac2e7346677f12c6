/** The parts of a response: other upstreams, all requested at the same time. */
import type { IncomingHttpHeaders } from 'node:http'
import type { UpstreamConfig } from '../config/schema/routes.ts'
import { GatewayError } from '../errors/errors.ts'
import type { Trail } from '../observability/trail.ts'
import { responseError } from './failures.ts'
import type { ForwardedFor, requestHeaders } from './request-headers.ts'
import {
  failedPart,
  type JsonSource,
  type MergeRules,
  type PartResult,
  type PartResults,
  type PartRules,
  readPart
} from './merge-parts.ts'
import { hasNoContent } from './no-content.ts'
import type { ShapeUse } from '../shaping/operation.ts'
import type { Upstream, WholeResponse } from './upstream.ts'

export interface Part extends PartRules {
  readonly upstream: Upstream
  /** Public target (path, maybe query) → target at the upstream. */
  readonly toUpstream: (target: string) => string
  readonly toHeaders: ReturnType<typeof requestHeaders>
  /** For the whole response. */
  readonly timeoutMs: number
}

/** The parts of a route. */
export interface Parts extends MergeRules {
  readonly parts: readonly Part[]
}

interface PartsRequest {
  readonly use: ShapeUse
  readonly headers: IncomingHttpHeaders
  readonly caller: ForwardedFor
  /** Of the request that the parts are for. */
  readonly trail?: Trail
  /** Aborts all requests. */
  readonly signal: AbortSignal
  /** Called when a part that is not required has failed. */
  readonly onMissing: PartResults['onMissing']
}

/**
 * Requests all parts.
 * @throws GatewayError as soon as a required part fails; the cause names the part
 */
export async function gather({ parts }: Parts, request: PartsRequest): Promise<PartResults> {
  const onMissing: PartsRequest['onMissing'] = (part, error) => {
    if (!request.signal.aborted) request.onMissing(part, error)
  }
  const results = await Promise.all(
    parts.map(async (part): Promise<PartResult> => {
      try {
        const value = await readPart(part, await fetchPart(part, request), request.use)
        return { part, value, isMissing: false }
      } catch (error) {
        return failedPart(part, error, onMissing)
      }
    })
  )
  return { results, onMissing }
}

/** @throws GatewayError */
async function fetchPart(
  { name, upstream, toUpstream, toHeaders, timeoutMs, maxBytes }: Part,
  { use, headers, caller, signal, trail }: PartsRequest
): Promise<JsonSource | 'empty'> {
  const response = await upstream.fetchWhole({
    method: 'GET',
    path: toUpstream(use.target),
    headers: toHeaders(headers, caller, false, true),
    timeoutMs,
    totalMs: timeoutMs,
    maxBytes,
    tooLarge: 'shape.too-large',
    signal,
    recorded: trail && { trail, purpose: 'part', part: name }
  })
  return sourceOf(response, upstream.config.errors)
}

/**
 * @param format of the upstream's error bodies
 * @throws GatewayError for a response that is no whole success
 */
function sourceOf(
  { status, headers, body: bytes }: WholeResponse,
  format: UpstreamConfig['errors']
): JsonSource | 'empty' {
  if (status >= 300) {
    throw status < 400
      ? new GatewayError('upstream.redirect')
      : responseError({ status, headers, bytes }, format)
  }
  if (hasNoContent({ status, headers, bytes })) return 'empty'
  if (status === 206) {
    throw new GatewayError('upstream.invalid', {
      cause: new Error('a partial response (206), which was not requested')
    })
  }
  return { bytes, headers }
}
