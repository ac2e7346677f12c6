/**
 * Spans as OTLP's JSON. It differs from protobuf's own JSON: ids are hexadecimal, and enums are
 * numbers (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding).
 */
import { flagsOf, nanosecondsOf, type Origin } from './otlp-protobuf.ts'
import type { Attribute, Span } from './spans.ts'

/** An ExportTraceServiceRequest. */
export function writeJson({ resource, scope }: Origin, spans: readonly Span[]): Buffer {
  const scopeSpans = [{ scope, spans: spans.map(jsonOf) }]
  const resourceSpans = [{ resource: { attributes: resource.map(attributeOf) }, scopeSpans }]
  return Buffer.from(JSON.stringify({ resourceSpans }))
}

function jsonOf(span: Span): object {
  return {
    traceId: span.traceId,
    spanId: span.spanId,
    traceState: span.state,
    parentSpanId: span.parentId,
    name: span.name.toWellFormed(),
    kind: span.kind,
    startTimeUnixNano: String(nanosecondsOf(span.startMs)),
    endTimeUnixNano: String(nanosecondsOf(span.endMs)),
    attributes: span.attributes.map(attributeOf),
    status: span.isError ? { code: 2 } : {},
    flags: flagsOf(span)
  }
}

function attributeOf([key, value]: Attribute): object {
  if (typeof value === 'string') return { key, value: { stringValue: value.toWellFormed() } }
  if (!Number.isSafeInteger(value)) return { key, value: { doubleValue: value } }
  return { key, value: { intValue: String(value) } }
}
