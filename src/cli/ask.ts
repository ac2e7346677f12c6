/** A token goes to the place of `--url` only: never into an error, or after a redirect. */
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { type IncomingMessage, request as requestHttp, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { text as readAll } from 'node:stream/consumers'
import { getCACertificates } from 'node:tls'
import { readOpsSocket } from '../config/read/files.ts'
import { reasonOf } from '../config/schema/faults.ts'
import { isLoopback } from '../config/schema/host-port.ts'
import { amountOf, url as urlKey } from '../config/schema/primitives.ts'
import { tryJson } from '../json/body.ts'
import { isRecord } from '../json/values.ts'
import { adopt } from '../observability/emitters.ts'
import { printableLines } from '../observability/unprintable.ts'
import { findGateways, socketFolders } from '../ops/socket.ts'
import {
  type Asked,
  CommandError,
  type Connection,
  defaultFolder,
  fitting,
  type Io,
  UsageError
} from './command.ts'

const tokenVariable = 'CONSOLE_GATEWAY_TOKEN'
/** Of silence; a reload may take its time. */
const timeoutMs = 120_000

export async function localGateways(configs: readonly string[], { env }: Io) {
  const config = configs.at(-1) ?? defaultFolder
  const folder = existsSync(config) ? config : undefined
  if (folder === undefined && config !== defaultFolder) {
    throw new CommandError(`There is no folder ${config}.`)
  }
  const configured = folder === undefined ? undefined : readOpsSocket(configs, env)
  if (configured === false) {
    throw new CommandError('ops.socket is false: commands ask this gateway by --url URL.')
  }
  const folders = socketFolders(configured, env)
  const found = await findGateways(folders, folder)
  if (found.length > 0) return found.map(each => ({ base: 'http://localhost', ...each }))
  const whose = folder === undefined ? '' : ` with the config folder ${folder}`
  throw new CommandError(
    `No gateway${whose} runs here that this user may ask (sockets in ${folders.join(', ')}). ` +
      'Is it running? Ask it as its user and in its container, or from afar by --url URL.'
  )
}

export function remoteGateway(url: string, { env }: Io): Connection {
  const parsed = URL.parse(url)
  const problem = fitting(urlKey(''))(url)
  // Not quoted: it may hold a password.
  if (parsed === null || problem !== undefined) {
    throw new UsageError(`--url: ${problem ?? 'no address'}. The token is in ${tokenVariable}.`)
  }
  const { protocol, hostname, href } = parsed
  if (protocol === 'http:' && !isLoopback(hostname.replaceAll(/[[\]]/g, ''))) {
    throw new UsageError(
      '--url: plain http goes to this machine only. Use https:// (ops.tls, or a proxy), or a ' +
        'tunnel: ssh -L 9090:127.0.0.1:9090 HOST and --url http://127.0.0.1:9090.'
    )
  }
  const token = env[tokenVariable]?.trim() ?? ''
  if (!/^[\x21-\x7e]{1,1000}$/.test(token)) {
    throw new UsageError(`--url needs the secret of that gateway (ops.secret) in ${tokenVariable}.`)
  }
  return { base: href.replace(/\/$/, ''), token }
}

/** Node's own list, with NODE_EXTRA_CA_CERTS; a company's authority is in that of the system. */
const authorities = () => [...getCACertificates('default'), ...getCACertificates('system')]

const noReason = 'without a reason. Is that the address of its operators’ listener (ops.listen)?'

/** @throws CommandError; UsageError for words that the gateway does not take */
export async function ask<Answer>(gateway: Connection, ...[place, fields = {}]: Asked) {
  const asked = Object.entries(fields.query ?? {}).filter(([, value]) => value !== undefined)
  const path = `/ops/api${place}?${new URLSearchParams(asked as Array<[string, string]>).toString()}`
  const { status, members } = await send(gateway, path, fields.body)
  if (status === 401) {
    throw new CommandError('The gateway refused the token: it is not its secret (ops.secret).')
  }
  if (status < 200 || status > 299) {
    const { error } = members ?? {}
    const reason = typeof error === 'string' ? error : noReason
    const text = `The gateway answered ${status}: ${printableLines(reason)}`
    throw status === 400 ? new UsageError(text) : new CommandError(text)
  }
  if (members === undefined) {
    throw new CommandError(`The response to ${path} is not of a gateway: it is no JSON object.`)
  }
  return members as Answer
}

export async function send({ base, token, socketPath }: Connection, path: string, body?: object) {
  const url = new URL(base + path)
  const json = body === undefined ? undefined : JSON.stringify(body)
  const options: RequestOptions = {
    method: json === undefined ? 'GET' : 'POST',
    agent: false,
    timeout: timeoutMs,
    ...(socketPath !== undefined && { socketPath }),
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && { 'content-type': 'application/json' })
    }
  }
  const request = adopt(
    url.protocol === 'https:'
      ? requestHttps(url, { ...options, rejectUnauthorized: true, ca: authorities() })
      : requestHttp(url, options)
  )
  const silence = new Error(`no response for ${timeoutMs / 1000} s`)
  request.on('timeout', () => void request.destroy(silence))
  request.end(json)
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    const text = await readAll(adopt(response))
    const shown = token === undefined ? text : text.replaceAll(token, '[token]')
    const value = tryJson(Buffer.from(shown), {}, Infinity)
    return { status: response.statusCode ?? 0, members: isRecord(value) ? value : undefined }
  } catch (error) {
    // The code alone: OpenSSL's text is several lines, and that of several addresses is empty.
    const reason = `No gateway answers on ${url.host}: ${reasonOf(error)}`
    throw new CommandError(`${reason}. Is it running, and at this address?`)
  }
}

export function forMs(written: string | undefined): number | undefined {
  if (written === undefined) return undefined
  const ms = amountOf('x-duration', written)
  if (Number.isFinite(ms)) return ms
  throw new UsageError(`"${written}" is no duration such as 30m, 2h or 7d.`)
}

/** A time as it is written; of a duration, the time that is so far from now. */
export function timeOf(written: string | undefined): string | undefined {
  const ms = amountOf('x-duration', String(written))
  return Number.isFinite(ms) ? new Date(Date.now() + ms).toISOString() : written
}
