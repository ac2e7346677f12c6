/** The trace context of a call to a back-end. */
import type { AttemptSpan, TrailAttempt } from '../trail.ts'
import { takeIds } from './random-ids.ts'
import { type TraceContext, writeContext } from './context.ts'

export interface OutgoingCall {
  readonly method: string
  /** At the upstream, with the query. */
  readonly path: string
  readonly headers: Record<string, string | string[]>
  /** Scheme, host and port. */
  readonly origin: string
  /** Whether the upstream may get the caller's `tracestate`. */
  readonly passesState: boolean
}

/** Writes the context into the call's headers; where spans are recorded, the call gets its own. */
export function traceCall(
  trace: TraceContext,
  attempt: TrailAttempt,
  { method, path, headers, origin, passesState }: OutgoingCall
): void {
  if (!trace.isRecorded) return writeContext(headers, trace, passesState)
  const span: AttemptSpan = {
    spanId: takeIds().slice(32),
    method,
    url: origin + pathOf(path)
  }
  attempt.span = span
  writeContext(headers, trace, passesState, span.spanId)
}

/** Without the query, which may hold tokens. */
function pathOf(target: string): string {
  const mark = target.indexOf('?')
  return mark < 0 ? target : target.slice(0, mark)
}
