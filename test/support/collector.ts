/**
 * An OTLP collector that takes nothing on trust: each request is decoded by OpenTelemetry's own
 * code, generated from the published protobuf (the last release of it that decodes).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import {
  createServer,
  type IncomingHttpHeaders,
  type IncomingMessage,
  type Server,
  type ServerResponse
} from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import type { Authority } from './authority.ts'
import { listen } from './ports.ts'

interface MessageType {
  readonly decode: (bytes: Uint8Array) => object
  readonly verify: (message: object) => string | null
  readonly toObject: (message: object, options: object) => object
}

// The package exports its encoder alone; the generated code decodes as well.
const require = createRequire(import.meta.url)
const main = require.resolve('otlp-decoder')
const { opentelemetry } = require(join(main, '../generated/root.js')) as {
  readonly opentelemetry: {
    readonly proto: {
      readonly collector: {
        readonly trace: { readonly v1: Record<string, MessageType> }
      }
    }
  }
}
const { ExportTraceServiceRequest: requestType = assert.fail() } =
  opentelemetry.proto.collector.trace.v1

export interface DecodedSpan {
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId: string
  readonly traceState: string
  readonly name: string
  readonly kind: string
  readonly startTimeUnixNano: string
  readonly endTimeUnixNano: string
  readonly flags: number
  readonly attributes: Readonly<Record<string, unknown>>
  readonly isError: boolean
}

export interface Decoded {
  readonly resource: Readonly<Record<string, unknown>>
  readonly scope: string
  readonly spans: readonly DecodedSpan[]
}

interface KeyValue {
  readonly key: string
  readonly value: Readonly<Record<string, unknown>>
}

interface Message {
  readonly resourceSpans: ReadonlyArray<{
    readonly resource: { readonly attributes: readonly KeyValue[] }
    readonly scopeSpans: ReadonlyArray<{
      readonly scope: { readonly name: string; readonly version: string }
      readonly spans: ReadonlyArray<
        Omit<DecodedSpan, 'attributes' | 'isError'> & {
          readonly attributes: readonly KeyValue[]
          readonly status?: { readonly code?: string } | null
        }
      >
    }>
  }>
}

/** @throws where the bytes are not exactly what the published protobuf describes */
export function decode(bytes: Uint8Array): Decoded {
  const message = requestType.decode(bytes)
  assert.equal(requestType.verify(message), null)
  const options = { longs: String, enums: String, bytes: Buffer, defaults: true }
  const { resourceSpans } = requestType.toObject(message, options) as Message
  assert.equal(resourceSpans.length, 1)
  const [{ resource, scopeSpans } = assert.fail()] = resourceSpans
  const [{ scope, spans } = assert.fail()] = scopeSpans
  return {
    resource: plain(resource.attributes),
    scope: `${scope.name} ${scope.version}`,
    spans: spans.map(({ attributes, status, ...span }) => ({
      traceState: span.traceState,
      name: span.name,
      kind: span.kind,
      startTimeUnixNano: span.startTimeUnixNano,
      endTimeUnixNano: span.endTimeUnixNano,
      flags: span.flags,
      traceId: hex(span.traceId),
      spanId: hex(span.spanId),
      parentSpanId: hex(span.parentSpanId),
      attributes: plain(attributes),
      isError: status?.code === 'STATUS_CODE_ERROR'
    }))
  }
}

function hex(bytes: unknown): string {
  return Buffer.from(bytes as Uint8Array).toString('hex')
}

function plain(attributes: readonly KeyValue[]): Record<string, unknown> {
  const names = attributes.map(({ key }) => key)
  assert.equal(new Set(names).size, names.length, 'an attribute stands there once')
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, intValue, doubleValue } = value
      return [key, stringValue ?? (intValue === undefined ? doubleValue : Number(intValue))]
    })
  )
}

export interface TestCollector {
  readonly url: string
  readonly requests: Array<
    Decoded & { readonly headers: IncomingHttpHeaders; readonly path: string }
  >
  /** The spans of all requests. */
  readonly spans: () => DecodedSpan[]
  /** In place of the response that all was taken. */
  answer: ((response: ServerResponse) => void) | undefined
}

/** @param authority with it the collector speaks TLS */
export async function testCollector(
  cleanUp: (undo: () => unknown) => void,
  authority?: Authority
): Promise<TestCollector> {
  const server = serverOf(authority)
  server.on('request', (request: IncomingMessage, response: ServerResponse) => {
    void buffer(request).then(body => {
      const { headers, url: path = '' } = request
      const bytes = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
      if (collector.answer !== undefined) return collector.answer(response)
      collector.requests.push({ ...decode(bytes), headers, path })
      response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    })
  })
  const scheme = authority === undefined ? 'http' : 'https'
  const url = `${scheme}://127.0.0.1:${await listen(server)}`
  const collector: TestCollector = {
    url,
    requests: [],
    spans: () => collector.requests.flatMap(({ spans }) => spans),
    answer: undefined
  }
  cleanUp(() => {
    server.closeAllConnections()
    server.close()
  })
  return collector
}

function serverOf(authority: Authority | undefined): Server {
  if (authority === undefined) return createServer()
  const { key, certificate } = authority
  return createTlsServer({ key: readFileSync(key), cert: readFileSync(certificate) })
}

/** Sets variables of the process, which the exporter reads, until the end of the test. */
export function setEnvironment(
  cleanUp: (undo: () => unknown) => void,
  variables: Readonly<Record<string, string>>
): void {
  const former = { ...process.env }
  Object.assign(process.env, variables)
  cleanUp(() => {
    for (const name of Object.keys(variables)) {
      if (former[name] === undefined) delete process.env[name]
      else process.env[name] = former[name]
    }
  })
}

/** Has gateways export to a collector soon after each request, until the end of the test. */
export const exportTo = (
  cleanUp: (undo: () => unknown) => void,
  url: string,
  more: Readonly<Record<string, string>> = {}
): void =>
  setEnvironment(cleanUp, {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_BSP_SCHEDULE_DELAY: '20',
    ...more
  })

/** The one span that fits. */
export function only(
  spans: readonly DecodedSpan[],
  fits: (span: DecodedSpan) => boolean
): DecodedSpan {
  const [span, ...others] = spans.filter(fits)
  if (span === undefined || others.length > 0) throw new Error(`${others.length + 1} spans, not 1`)
  return span
}
