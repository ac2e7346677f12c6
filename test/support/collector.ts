/**
 * An OTLP collector that takes nothing on trust: each request is decoded by OpenTelemetry's own
 * code, generated from the published protobuf (the last release of it that decodes).
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import type { Authority } from './authority.ts'
import { listen } from './ports.ts'

type CleanUp = (undo: () => unknown) => void

// The package exports its encoder alone; the generated code, which decodes as well, has no types.
const require = createRequire(import.meta.url)
const { opentelemetry } = require(
  join(require.resolve('otlp-decoder'), '../generated/root.js')
) as Record<string, any>
const requestType = opentelemetry.proto.collector.trace.v1.ExportTraceServiceRequest

// Tests name the members they expect.
type Plain = Readonly<Record<string, any>>
type Decoded = ReturnType<typeof decode>
export type TestCollector = Awaited<ReturnType<typeof testCollector>>
export type DecodedSpan = Decoded['spans'][number]

/** @throws where the bytes are not exactly what the published protobuf describes */
function decode(bytes: Uint8Array) {
  const message = requestType.decode(bytes)
  assert.equal(requestType.verify(message), null)
  const options = { longs: String, enums: String, bytes: Buffer, defaults: true }
  const { resourceSpans } = requestType.toObject(message, options)
  assert.equal(resourceSpans.length, 1)
  const [{ resource, scopeSpans }] = resourceSpans
  const [{ spans }] = scopeSpans
  return {
    resource: plain(resource.attributes),
    spans: (spans as Plain[]).map(
      ({ attributes, status, traceId, spanId, parentSpanId, ...span }): Plain => ({
        ...span,
        traceId: hex(traceId),
        spanId: hex(spanId),
        parentSpanId: hex(parentSpanId),
        attributes: plain(attributes),
        isError: status?.code === 'STATUS_CODE_ERROR'
      })
    )
  }
}

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

function plain(attributes: readonly Plain[]): Plain {
  const names = attributes.map(({ key }) => key)
  assert.equal(new Set(names).size, names.length, 'an attribute stands there once')
  return Object.fromEntries(
    attributes.map(({ key, value }) => {
      const { stringValue, intValue, doubleValue } = value
      return [key, stringValue ?? (intValue === undefined ? doubleValue : Number(intValue))]
    })
  )
}

type Request = Decoded & { readonly headers: IncomingHttpHeaders; readonly path: string }

/** @param authority with it the collector speaks TLS */
export async function testCollector(cleanUp: CleanUp, authority?: Authority) {
  const server =
    authority === undefined
      ? createServer()
      : createTlsServer({
          key: readFileSync(authority.key),
          cert: readFileSync(authority.certificate)
        })
  server.on('request', async (request, response) => {
    const body = await buffer(request)
    const { headers, url: path = '' } = request
    const bytes = headers['content-encoding'] === 'gzip' ? gunzipSync(body) : body
    collector.requests.push({ ...decode(bytes), headers, path })
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  const scheme = authority === undefined ? 'http' : 'https'
  const collector = {
    url: `${scheme}://127.0.0.1:${await listen(server)}`,
    requests: [] as Request[],
    /** The spans of all requests. */
    spans: () => collector.requests.flatMap(({ spans }): DecodedSpan[] => spans)
  }
  cleanUp(() => {
    server.closeAllConnections()
    server.close()
  })
  return collector
}

/** Sets variables of the process, which the exporter reads, until the end of the test. */
export function setEnvironment(
  cleanUp: CleanUp,
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
export const exportTo = (cleanUp: CleanUp, url: string): void =>
  setEnvironment(cleanUp, {
    OTEL_EXPORTER_OTLP_ENDPOINT: url,
    OTEL_BSP_SCHEDULE_DELAY: '20'
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
