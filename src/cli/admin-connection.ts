/**
 * A request of a command to a gateway: by its socket on this machine, or by `--url`. A token goes to
 * that place only: it is never on the command line, in an error, or sent after a redirect.
 */
import { once } from 'node:events'
import { constants, readFileSync, statSync } from 'node:fs'
import {
  type ClientRequest,
  type IncomingMessage,
  request as requestHttp,
  type RequestOptions
} from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { type ConnectionOptions, getCACertificates } from 'node:tls'
import { adopt } from '../observability/emitters.ts'
import { CommandError, type GatewayAddress, type Io, UsageError } from './command.ts'

export interface Connection {
  /** Without a slash at its end. */
  readonly base: string
  readonly token?: string | undefined
  readonly ca?: Buffer | string[] | undefined
  /** The gateway's Unix socket, which needs no token. */
  readonly socketPath?: string
}

export interface AdminResponse {
  readonly status: number
  readonly text: string
}

const tokenVariable = 'CONSOLE_GATEWAY_TOKEN'
/** Of silence; a reload may take its time. */
const timeoutMs = 120_000
/** Longer than what a gateway with 100,000 sessions answers. */
const maxResponseBytes = 64 * 1024 * 1024
const tokenText = /^[\x21-\x7e]{1,1000}$/

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8)
loopback.addAddress('::1', 'ipv6')

/**
 * Of `--url`, with the token for it.
 * @throws UsageError for a URL to which no token may go, or without a token
 */
export function remoteConnection(address: GatewayAddress, url: string): Connection {
  const { caFile } = address
  const { protocol, hostname, username, password, search, hash, href } = parseUrl(url)
  if (protocol !== 'https:' && protocol !== 'http:') {
    throw new UsageError('--url begins with https:// or http://.')
  }
  if (username !== '' || password !== '') {
    throw new UsageError(`--url holds no credentials: put the token into ${tokenVariable}.`)
  }
  if (search !== '' || hash !== '') throw new UsageError('--url has no query and no fragment.')
  if (protocol === 'http:' && !isLoopback(hostname)) {
    throw new UsageError(
      `--url http://${hostname}… would send the token in clear text: plain http goes to this ` +
        'machine only. Use https:// (ops.tls, or a proxy with a certificate), or a tunnel such ' +
        'as ssh -L 9090:127.0.0.1:9090 HOST with --url http://127.0.0.1:9090.'
    )
  }
  return {
    base: href.replace(/\/$/, ''),
    token: tokenOf(address),
    ca: caFile === undefined ? authorities(protocol) : readOrFail('--ca', caFile)
  }
}

/** Node knows its own list only; a company's authority is in that of the system. */
function authorities(protocol: string): string[] | undefined {
  if (protocol !== 'https:') return undefined
  return [...getCACertificates('default'), ...getCACertificates('system')]
}

function parseUrl(url: string): URL {
  const parsed = URL.parse(url)
  // Not quoted: it may hold a password.
  if (parsed === null) throw new UsageError('--url is not a valid URL.')
  return parsed
}

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost') return true
  const address = hostname.replaceAll(/[[\]]/g, '')
  const version = isIP(address)
  return version !== 0 && loopback.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

function tokenOf({ tokenFile: file, io }: GatewayAddress): string {
  const text =
    file === undefined ? io.env[tokenVariable] : readOrFail('--token-file', file).toString()
  const token = text?.trim() ?? ''
  if (token === '') {
    throw new UsageError(
      `--url needs the operators' secret of that gateway: in ${tokenVariable}, or in a file ` +
        'named by --token-file.'
    )
  }
  const place = file ?? tokenVariable
  if (!tokenText.test(token)) throw new UsageError(`${place} holds no token: one word is expected.`)
  if (file !== undefined) warnOfReaders(file, io)
  return token
}

/** No refusal: secrets that are mounted into containers often have such a mode. */
function warnOfReaders(file: string, { stderr }: Pick<Io, 'stderr'>): void {
  const { mode } = statSync(file)
  if ((mode & constants.S_IROTH) === 0) return
  stderr.write(
    `warning: every user of this machine can read ${file}, which can operate the gateway: ` +
      `chmod 600 ${file}\n`
  )
}

function readOrFail(option: string, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const { code = 'it cannot be read' } = error as NodeJS.ErrnoException
    throw new CommandError(`${option} ${file}: ${code}`)
  }
}

/** @throws CommandError when nobody answers, and for a redirect */
export async function send(
  { base, token, ca, socketPath }: Connection,
  path: string,
  body?: object
): Promise<AdminResponse> {
  const url = new URL(base + path)
  const json = body === undefined ? undefined : JSON.stringify(body)
  const options: RequestOptions & ConnectionOptions = {
    method: json === undefined ? 'GET' : 'POST',
    agent: false,
    timeout: timeoutMs,
    rejectUnauthorized: true,
    ...(ca !== undefined && { ca }),
    ...(socketPath !== undefined && { socketPath }),
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(json !== undefined && {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(json)
      })
    }
  }
  const request =
    url.protocol === 'https:' ? adopt(requestHttps(url, options)) : adopt(requestHttp(url, options))
  request.on('timeout', () => {
    request.destroy(new Error(`no response for ${timeoutMs / 1000} s`))
  })
  request.end(json)
  const response = await responseTo(request, url.host)
  const { statusCode: status = 0 } = response
  if (status >= 300 && status < 400) {
    response.destroy()
    throw new CommandError(
      `${url.host} answered ${status}, a redirect, which is not followed: the token is for this ` +
        'address only. Give the address of the operators’ listener itself.'
    )
  }
  const text = await textOf(response, url.host)
  return { status, text: token === undefined ? text : text.replaceAll(token, '[token]') }
}

/** @throws CommandError for a response that breaks off, or that has no end */
async function textOf(response: IncomingMessage, host: string): Promise<string> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > maxResponseBytes) break
      chunks.push(chunk)
    }
  } catch (error) {
    throw new CommandError(`The response of ${host} broke off: ${(error as Error).message}.`)
  }
  if (length <= maxResponseBytes) return Buffer.concat(chunks).toString()
  const limit = `${maxResponseBytes / 1024 / 1024} MiB`
  throw new CommandError(`The response of ${host} is longer than ${limit}. Is it a gateway?`)
}

async function responseTo(request: ClientRequest, host: string): Promise<IncomingMessage> {
  try {
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    return adopt(response)
  } catch (error) {
    throw new CommandError(
      `No gateway answers on ${host}: ${reasonOf(error as Error)}. ` +
        'Is it running, and at this address?'
    )
  }
}

/** Of several addresses that were tried: the first. */
function reasonOf(error: NodeJS.ErrnoException & { readonly errors?: readonly Error[] }): string {
  // OpenSSL's text is several lines of its own places.
  if (error.code === 'EPROTO') return 'it does not speak https'
  const { message } = error.errors?.[0] ?? error
  // Node's advice after it is an option of its own, which commands do not take.
  const [certificate = '', advice] = message.split('; if the root CA')
  return advice === undefined ? message : `${certificate} (--ca FILE names an authority to trust)`
}
