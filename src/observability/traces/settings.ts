/**
 * OpenTelemetry's standard environment variables for traces. A wrong value is reported and left
 * out, as its specification asks: no setting of traces may keep the gateway from serving.
 */
import { X509Certificate } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { createSecureContext } from 'node:tls'
import { createSampler, defaultSampler, isSamplerName, type Sampler } from './sampler.ts'
import type { Attribute } from './spans.ts'

export type Environment = Readonly<Record<string, string | undefined>>

export interface ExportSettings {
  readonly url: URL
  readonly encoding: 'protobuf' | 'json'
  readonly isCompressed: boolean
  readonly headers: Readonly<Record<string, string>>
  /** PEM texts. */
  readonly tls: { readonly ca?: string; readonly cert?: string; readonly key?: string }
  /** Of one request to the collector. */
  readonly timeoutMs: number
  /** Of a batch, with its retries. */
  readonly batchTimeoutMs: number
  readonly delayMs: number
  /** In spans. */
  readonly maxQueue: number
  readonly maxBatch: number
  readonly resource: readonly Attribute[]
}

export interface TraceSettings {
  /** Without it no request gets a trace of ours, and the caller's headers pass as they are. */
  readonly sampler: Sampler | undefined
  /** Undefined where no endpoint is named, or where its settings have faults. */
  readonly exporting: ExportSettings | undefined
  /** For the operator, one line each. */
  readonly problems: readonly string[]
}

interface Context {
  readonly environment: Environment
  /** Relative files start here. */
  readonly folder: string
  readonly problems: string[]
}

const maxFileBytes = 64 * 1024
const tracesPath = 'v1/traces'
const headerName = /^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$/
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/

/** Thrown where spans could only be sent wrongly, or without the credential that they need. */
class Unusable extends Error {}

export function readTraceSettings(
  environment: Environment,
  folder: string,
  version: string
): TraceSettings {
  const context: Context = { environment, folder, problems: [] }
  const { problems } = context
  if (valueOf(context, 'OTEL_SDK_DISABLED')?.toLowerCase() === 'true') {
    return { sampler: undefined, exporting: undefined, problems }
  }
  const sampler = samplerOf(context)
  try {
    return { sampler, exporting: exportingOf(context, version), problems }
  } catch (error) {
    if (!(error instanceof Unusable)) throw error
    problems.push(`${error.message}; no traces are exported`)
    return { sampler, exporting: undefined, problems }
  }
}

/** An empty variable counts as not set. */
function valueOf({ environment }: Context, ...names: readonly string[]): string | undefined {
  return names
    .map(name => environment[name]?.trim())
    .find(value => value !== undefined && value !== '')
}

/** The variable of traces comes before that of all signals. */
function exporterValue(context: Context, name: string): string | undefined {
  return valueOf(context, `OTEL_EXPORTER_OTLP_TRACES_${name}`, `OTEL_EXPORTER_OTLP_${name}`)
}

function samplerOf(context: Context): Sampler {
  const { problems } = context
  const name = valueOf(context, 'OTEL_TRACES_SAMPLER') ?? defaultSampler
  const argument = valueOf(context, 'OTEL_TRACES_SAMPLER_ARG')
  const ratio = Number(argument ?? 1)
  const isRatio = ratio >= 0 && ratio <= 1
  if (!isRatio && name.endsWith('ratio')) {
    problems.push(`OTEL_TRACES_SAMPLER_ARG is not a number from 0 to 1: 1 is taken`)
  }
  if (isSamplerName(name)) return createSampler(name, isRatio ? ratio : 1)
  problems.push(`OTEL_TRACES_SAMPLER does not take "${name}": ${defaultSampler} is taken`)
  return createSampler(defaultSampler, 1)
}

function exportingOf(context: Context, version: string): ExportSettings | undefined {
  const exporters = valueOf(context, 'OTEL_TRACES_EXPORTER')
    ?.split(',')
    .map(name => name.trim())
  const url = endpointOf(context)
  if (exporters?.includes('none') === true) return undefined
  if (exporters !== undefined && !exporters.includes('otlp')) {
    throw new Unusable(`OTEL_TRACES_EXPORTER takes otlp or none, not "${exporters.join(',')}"`)
  }
  if (url === undefined) {
    if (exporters === undefined) return undefined
    throw new Unusable('OTEL_TRACES_EXPORTER is otlp, but OTEL_EXPORTER_OTLP_ENDPOINT is not set')
  }
  const maxQueue = numberOf(context, 'OTEL_BSP_MAX_QUEUE_SIZE', 2048)
  return {
    url,
    encoding: encodingOf(context),
    isCompressed: isCompressed(context),
    headers: headersOf(context),
    tls: tlsOf(context),
    timeoutMs: timeoutOf(context),
    batchTimeoutMs: numberOf(context, 'OTEL_BSP_EXPORT_TIMEOUT', 30_000),
    delayMs: numberOf(context, 'OTEL_BSP_SCHEDULE_DELAY', 5000),
    maxQueue,
    maxBatch: Math.min(maxQueue, numberOf(context, 'OTEL_BSP_MAX_EXPORT_BATCH_SIZE', 512)),
    resource: resourceOf(context, version)
  }
}

/** That of traces is taken as it is; below that of all signals stands the path of traces. */
function endpointOf(context: Context): URL | undefined {
  const ofTraces = valueOf(context, 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT')
  const ofAll = valueOf(context, 'OTEL_EXPORTER_OTLP_ENDPOINT')
  const written = ofTraces ?? ofAll
  if (written === undefined) return undefined
  const name =
    ofTraces === undefined ? 'OTEL_EXPORTER_OTLP_ENDPOINT' : 'OTEL_EXPORTER_OTLP_TRACES_ENDPOINT'
  const url = URL.canParse(written) ? new URL(written) : undefined
  if (url?.protocol !== 'http:' && url?.protocol !== 'https:') {
    throw new Unusable(`${name} is not a URL of http or https`)
  }
  if (url.username !== '' || url.password !== '') {
    throw new Unusable(`${name} holds a password: put it into OTEL_EXPORTER_OTLP_HEADERS`)
  }
  if (ofTraces === undefined) url.pathname = `${url.pathname.replace(/\/$/, '')}/${tracesPath}`
  return url
}

function encodingOf(context: Context): ExportSettings['encoding'] {
  const protocol = exporterValue(context, 'PROTOCOL') ?? 'http/protobuf'
  if (protocol === 'http/protobuf') return 'protobuf'
  if (protocol === 'http/json') return 'json'
  throw new Unusable(
    `OTEL_EXPORTER_OTLP_PROTOCOL does not take "${protocol}": ` +
      'set http/protobuf or http/json, and an endpoint that takes it (most often port 4318)'
  )
}

function isCompressed(context: Context): boolean {
  const compression = exporterValue(context, 'COMPRESSION') ?? 'none'
  if (compression === 'gzip' || compression === 'none') return compression === 'gzip'
  context.problems.push(
    `OTEL_EXPORTER_OTLP_COMPRESSION does not take "${compression}": nothing is compressed`
  )
  return false
}

/** `name=value,name=value`, percent-encoded; a value `file:PATH` stands for the file's content. */
function headersOf(context: Context): Record<string, string> {
  const headers: Record<string, string> = {}
  for (const [name, value] of pairsOf(exporterValue(context, 'HEADERS') ?? '') ?? []) {
    if (!headerName.test(name)) {
      throw new Unusable('OTEL_EXPORTER_OTLP_HEADERS has a name that no header can have')
    }
    const text = value.startsWith('file:') ? readFile(context, value.slice('file:'.length)) : value
    if (!headerValue.test(text)) {
      throw new Unusable(`OTEL_EXPORTER_OTLP_HEADERS: "${name}" has characters of no header`)
    }
    headers[name.toLowerCase()] = text
  }
  if (pairsOf(exporterValue(context, 'HEADERS') ?? '') === undefined) {
    throw new Unusable('OTEL_EXPORTER_OTLP_HEADERS is not name=value,name=value')
  }
  return headers
}

function tlsOf(context: Context): ExportSettings['tls'] {
  const [ca, cert, key] = ['CERTIFICATE', 'CLIENT_CERTIFICATE', 'CLIENT_KEY'].map(name => {
    const file = exporterValue(context, name)
    return file === undefined ? undefined : readFile(context, file)
  })
  const tls = {
    ...(ca !== undefined && { ca }),
    ...(cert !== undefined && { cert }),
    ...(key !== undefined && { key })
  }
  try {
    // Each connection would fail with the same error.
    createSecureContext(tls)
    // TLS takes any text for authorities, and then trusts nobody.
    if (ca !== undefined) readCertificate(ca)
  } catch (error) {
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    throw new Unusable(
      'OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE and CLIENT_KEY are no certificate and its key, ' +
        `or OTEL_EXPORTER_OTLP_CERTIFICATE is none (${code})`
    )
  }
  return tls
}

/** @throws where the text begins with none */
function readCertificate(text: string): X509Certificate {
  return new X509Certificate(text)
}

function readFile({ folder }: Context, file: string): string {
  try {
    const content = readFileSync(resolve(folder, file))
    if (content.length > 0 && content.length <= maxFileBytes) return content.toString().trimEnd()
    throw new Unusable(`${file} is empty, or larger than ${maxFileBytes} bytes`)
  } catch (error) {
    if (error instanceof Unusable) throw error
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    throw new Unusable(`${file} cannot be read (${code})`)
  }
}

function resourceOf(context: Context, version: string): Attribute[] {
  const written = pairsOf(valueOf(context, 'OTEL_RESOURCE_ATTRIBUTES') ?? '')
  if (written === undefined) {
    context.problems.push('OTEL_RESOURCE_ATTRIBUTES is not name=value,name=value: it is left out')
  }
  const name = valueOf(context, 'OTEL_SERVICE_NAME')
  const attributes = new Map<string, string | number>([
    ['service.name', 'console-gateway'],
    ['service.version', version],
    ['service.instance.id', `${hostname()}:${process.pid}`],
    ['host.name', hostname()],
    ['process.pid', process.pid],
    ...(written ?? []),
    ...(name === undefined ? [] : [['service.name', name] as const])
  ])
  return [...attributes]
}

/** @returns undefined where the text is no list of pairs */
function pairsOf(written: string): Array<[name: string, value: string]> | undefined {
  const pairs: Array<[string, string]> = []
  for (const member of written.split(',')) {
    if (member.trim() === '') continue
    const sign = member.indexOf('=')
    if (sign < 1) return undefined
    try {
      const [name, value] = [member.slice(0, sign), member.slice(sign + 1)]
      pairs.push([decodeURIComponent(name.trim()), decodeURIComponent(value.trim())])
    } catch {
      return undefined
    }
  }
  return pairs
}

function timeoutOf(context: Context): number {
  const ofTraces = 'OTEL_EXPORTER_OTLP_TRACES_TIMEOUT'
  const isOwn = valueOf(context, ofTraces) !== undefined
  return numberOf(context, isOwn ? ofTraces : 'OTEL_EXPORTER_OTLP_TIMEOUT', 10_000)
}

function numberOf(context: Context, name: string, fallback: number): number {
  const written = valueOf(context, name)
  if (written === undefined) return fallback
  const value = Number(written)
  if (Number.isInteger(value) && value >= 1 && value < 2 ** 31) return value
  context.problems.push(`${name} is not a whole number above 0: ${fallback} is taken`)
  return fallback
}
