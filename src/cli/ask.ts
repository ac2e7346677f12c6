/**
 * Requests of commands to gateways: by their sockets on this machine, or by `--url`. A token goes to
 * that place only: it is never on the command line, in an error, or sent after a redirect.
 */
import { once } from 'node:events'
import { constants, existsSync, readFileSync, statSync } from 'node:fs'
import { type IncomingMessage, request as requestHttp, type RequestOptions } from 'node:http'
import { request as requestHttps } from 'node:https'
import { BlockList, isIP } from 'node:net'
import { type ConnectionOptions, getCACertificates } from 'node:tls'
import { readOpsSocket } from '../config/read/files.ts'
import { parseKeepingDigits } from '../json/digits.ts'
import { isRecord } from '../json/values.ts'
import { adopt } from '../observability/emitters.ts'
import { printableLines } from '../observability/unprintable.ts'
import { findGateways, socketFolders } from '../ops/socket.ts'
import {
  CommandError,
  type Connection,
  defaultFolder,
  type Invocation,
  type Io,
  type Output,
  type Remote,
  UsageError
} from './command.ts'
import { jsonText } from './output.ts'

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
 * The gateways of the config folder; without that folder, all that this user may ask.
 * @throws CommandError where there is none
 */
export async function localGateways(config: string, { env }: Io): Promise<Connection[]> {
  const folder = existsSync(config) ? config : undefined
  if (folder === undefined && config !== defaultFolder) {
    throw new CommandError(`There is no folder ${config}.`)
  }
  const configured = folder === undefined ? undefined : readOpsSocket(folder, env)
  if (configured === false) {
    throw new CommandError('ops.socket is false: commands ask this gateway by --url URL.')
  }
  const folders = socketFolders(configured, env)
  const found = await findGateways(folders, folder)
  if (found.length > 0) {
    return found.map(({ file, id }) => ({ base: 'http://localhost', id, socketPath: file }))
  }
  const whose = folder === undefined ? '' : ` with the config folder ${folder}`
  throw new CommandError(
    `No gateway${whose} runs here that this user may ask: there is no socket of one in ` +
      `${folders.join(', ')}. Is it running? Run this command as its user (or root) and in its ` +
      'container, or ask it from afar by --url URL.'
  )
}

/** @throws UsageError for a URL to which no token may go, or without a token */
export function remoteGateway({ url, tokenFile, caFile }: Remote, io: Io): Connection {
  const parsed = URL.parse(url)
  // Not quoted: it may hold a password.
  if (parsed === null) throw new UsageError('--url is not a valid URL.')
  const { protocol, hostname, username, password, search, hash, href } = parsed
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
    token: tokenOf(tokenFile, io),
    ...(protocol === 'https:' && { ca: authorities(caFile) })
  }
}

/** Node knows its own list only; a company's authority is in that of the system. */
function authorities(file: string | undefined): Buffer | string[] {
  if (file !== undefined) return readOrFail('--ca', file)
  return [...getCACertificates('default'), ...getCACertificates('system')]
}

function isLoopback(hostname: string): boolean {
  if (hostname === 'localhost') return true
  const address = hostname.replaceAll(/[[\]]/g, '')
  const version = isIP(address)
  return version !== 0 && loopback.check(address, version === 4 ? 'ipv4' : 'ipv6')
}

function tokenOf(file: string | undefined, { env, stderr }: Io): string {
  const text = file === undefined ? env[tokenVariable] : readOrFail('--token-file', file).toString()
  const token = text?.trim() ?? ''
  if (token === '') {
    throw new UsageError(
      `--url needs the operators' secret of that gateway: in ${tokenVariable}, or in a file ` +
        'named by --token-file.'
    )
  }
  const place = file ?? tokenVariable
  if (!tokenText.test(token)) throw new UsageError(`${place} holds no token: one word is expected.`)
  // No refusal: secrets that are mounted into containers often have such a mode.
  if (file !== undefined && (statSync(file).mode & constants.S_IROTH) !== 0) {
    stderr.write(
      `warning: every user of this machine can read ${file}, which can operate the gateway: ` +
        `chmod 600 ${file}\n`
    )
  }
  return token
}

function readOrFail(option: string, file: string): Buffer {
  try {
    return readFileSync(file)
  } catch (error) {
    const { code = 'it cannot be read' } = error as NodeJS.ErrnoException
    throw new CommandError(`${option} ${file}: ${code}`)
  }
}

/**
 * Asks the gateway of an invocation, and prints its answer.
 * @param path or path and body, which goes as JSON by POST
 */
export async function askAndPrint<Answer>(
  { gateway, json, io: { stdout } }: Pick<Invocation, 'gateway' | 'json' | 'io'>,
  [path, body]: readonly [path: string, body?: object],
  inWords: (answer: Answer, stream: Output) => string
): Promise<Answer> {
  const answer = await ask<Answer>(gateway, path, body)
  stdout.write(json ? jsonText(answer) : inWords(answer, stdout))
  return answer
}

/**
 * @param body sent as JSON by POST; GET without it
 * @returns the JSON object of the response, as it is
 * @throws CommandError with a message for the operator
 */
export async function ask<Answer = Readonly<Record<string, unknown>>>(
  gateway: Connection | undefined,
  path: string,
  body?: object
): Promise<Answer> {
  if (gateway === undefined) throw new Error('this command asks no gateway')
  const { status, text } = await send(gateway, path, body)
  if (status === 401) {
    throw new CommandError(
      'The gateway refused the token: it is not the operators’ secret (ops.secret) of the ' +
        'gateway at this address.'
    )
  }
  const members = membersOf(text)
  if (status < 200 || status > 299) {
    const { error } = members ?? {}
    const reason =
      typeof error === 'string'
        ? error
        : 'without a reason. Is that the address of its operators’ listener (ops.listen)?'
    throw new CommandError(`The gateway answered ${status}: ${printableLines(reason)}`)
  }
  if (members === undefined) {
    throw new CommandError(`The response to ${path} is not of a gateway: it is no JSON object.`)
  }
  return members as Answer
}

/** The members of a JSON response; undefined for another response. */
function membersOf(body: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = parseKeepingDigits(body)
    return isRecord(value) ? value : undefined
  } catch {
    return undefined
  }
}

/** @throws CommandError when nobody answers, and for a redirect */
async function send({ base, token, ca, socketPath }: Connection, path: string, body?: object) {
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
  const [response] = (await once(request, 'response').catch((error: unknown) => {
    const reason = reasonOf(error as Error)
    throw new CommandError(
      `No gateway answers on ${url.host}: ${reason}. Is it running, and at this address?`
    )
  })) as [IncomingMessage]
  const { statusCode: status = 0 } = adopt(response)
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

/** Of several addresses that were tried: the first. */
function reasonOf(error: NodeJS.ErrnoException & { readonly errors?: readonly Error[] }): string {
  // OpenSSL's text is several lines of its own places.
  if (error.code === 'EPROTO') return 'it does not speak https'
  const { message } = error.errors?.[0] ?? error
  // Node's advice after it is an option of its own, which commands do not take.
  const [certificate = '', advice] = message.split('; if the root CA')
  return advice === undefined ? message : `${certificate} (--ca FILE names an authority to trust)`
}
