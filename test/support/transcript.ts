/**
 * Transcripts: commands and requests with what they print, as a person would see it.
 *
 *     $ users block alice              a command; `--config FOLDER` is added, ID is the last request,
 *                                  SESSION the first session that was last printed as JSON
 *     $ users add bob < NEW         one that reads a variable of `env`
 *     blocked: alice; sessions …       what it prints; `…` is any text of a line, and alone in its
 *                                  line, at the beginning and at the end of all, also any lines
 *     [3]                              its exit code, if that is not 0
 *     > alice GET /api/orders × 2      a request, as somebody who signs in first, or `operator`
 *     200, 429 limit.exceeded          its status, and the code of an error
 *     ? ops.act                        the last line of the log with this event, or of this ID
 *     ? backend                        the last request that the back-end got
 *     ? users.yaml                     the text of a file
 *     ! limits.yaml max: 5 → max: 50   changes a file
 *
 * Several blanks are as one; lines after `//` are remarks.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { run } from './command.ts'
import { type Texts, textFolder } from './config-files.ts'
import { configFolder, type Files, testGateway } from './gateway.ts'
import { freePort } from './ports.ts'
import { testUpstream } from './upstream.ts'

export interface Scene extends Files {
  readonly title: string
  readonly says: string
  /** A folder of these files, and no gateway. */
  readonly texts?: Texts
  readonly env?: Readonly<Record<string, string>>
  /** What the back-end at `http://backend` answers by path; others get an object. */
  readonly answers?: Readonly<Record<string, Answer>>
}

interface Answer {
  readonly status?: number
  readonly body?: string
  readonly headers?: Readonly<Record<string, string>>
}

type Stage = Awaited<ReturnType<typeof stageOf>>['stage']

export async function play(t: Test, scene: Scene): Promise<void> {
  const { says, stage } = await stageOf(t, scene)
  for (const step of says.trimEnd().split(/\n(?=[$>!?] )/)) {
    const [asked = '', ...expected] = step.split('\n').filter(line => !line.startsWith('// '))
    const wanted = plain(expected.join('\n'))
    const printed = plain(await printedBy(stage, asked))
    const obeyed = /[\u0000-\u0009\u000b-\u001f\u0080-\u009f]/
    t.notMatch(printed, obeyed, 'nothing that a terminal obeys')
    const isFit = patternOf(wanted).test(`${printed}\n`)
    t.equal(isFit ? wanted : printed, wanted, asked)
  }
}

/** With real addresses of `http://backend`, and of `http://away`, where nothing listens. */
async function stageOf(t: Test, { answers = {}, ...scene }: Scene) {
  const backend = await testUpstream(t.after, (_request, response, { url }) => {
    const { status = 200, body = '{"name":"x"}', headers } = answers[url] ?? {}
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
  })
  const text = JSON.stringify(scene)
    .replaceAll('http://backend', backend.url)
    .replaceAll('http://away', `http://127.0.0.1:${await freePort()}`)
  const { says, texts, env = {}, ...files } = JSON.parse(text) as Scene
  const folder = texts === undefined ? await configFolder(files) : textFolder(t.after, texts)
  const gateway = texts === undefined ? await testGateway(t.after, folder, env) : undefined
  const cookies = new Map<string, string>()
  /** Of the last request, and of the session that was last printed as JSON. */
  const last = { id: '', session: '' }
  return { says, stage: { folder, env, gateway, cookies, backend, last } }
}

async function printedBy(stage: Stage, asked: string): Promise<string> {
  const [kind, rest = ''] = asked.split(/ (.*)/s)
  if (kind === '$') return await printedByCommand(stage, rest)
  if (kind === '!') return replaceInFile(stage, rest)
  if (asked === '? backend') {
    const { method, url, headers } = stage.backend.seen.at(-1) ?? {}
    return `${method} ${url} ${JSON.stringify(headers)}`
  }
  if (rest.endsWith('.yaml')) return readFileSync(join(stage.folder, rest), 'utf8').trimEnd()
  if (kind === '?') return await lineOfLog(stage, rest)
  return await printedByRequest(stage, rest)
}

async function printedByCommand(stage: Stage, line: string): Promise<string> {
  const [command = '', variable = ''] = line.split(' < ')
  const words = (command.match(/'[^']*'|\S+/g) ?? []).map(word => word.replaceAll("'", ''))
  if (words.includes('ID')) await lineOfLog(stage, 'ID')
  const { folder, last, env } = stage
  const given = words.map(word =>
    word
      .replace(/^ID$/, last.id)
      .replace(/^SESSION$/, last.session)
      .replace('FOLDER', folder)
  )
  const config = given.includes('-c') ? [] : ['-c', folder]
  const { code, out, err } = await run([...given, ...config], { env, input: env[variable] ?? '' })
  const printed = `${out}${err}`.replaceAll(folder, 'FOLDER').trimEnd()
  last.session = /"id": "([^"]+)"/.exec(out)?.[1] ?? last.session
  const lines = [...(printed === '' ? [] : [printed]), ...(code === 0 ? [] : [`[${code}]`])]
  return lines.join('\n')
}

/** A request is kept, and logged, when its response has been closed, which may be after the client has it. */
async function lineOfLog({ gateway, last }: Stage, about: string): Promise<string> {
  const isAbout = ({ msg, requestId, event }: Record<string, unknown>) =>
    about === 'ID' ? msg === 'request' && requestId === last.id : event === about
  await gateway?.logged(isAbout)
  return JSON.stringify(gateway?.log.findLast(isAbout))
}

/** Such as `limits.yaml max: 10 → max: 50`. */
function replaceInFile({ folder }: Stage, rest: string): string {
  const [name = '', change = ''] = rest.split(/ (.*)/s)
  const [old = '', next = ''] = change.split(' → ')
  const text = readFileSync(join(folder, name), 'utf8')
  if (!text.includes(old)) throw new Error(`${name} has no "${old}"`)
  writeFileSync(join(folder, name), text.replace(old, next))
  return ''
}

async function printedByRequest(stage: Stage, line: string): Promise<string> {
  const { gateway } = stage
  const [, name, method = 'GET', path = '', body, times = '1'] =
    /^(?:(\w+) (?=[A-Z]))?(?:([A-Z]+) (\S+)|signs in)(?: (\{.*\}))?(?: × (\d+))?$/.exec(line) ?? []
  if (gateway === undefined) throw new Error('there is no gateway')
  const [signing] = line.split(' signs in')
  if (line.endsWith(' signs in')) {
    stage.cookies.set(signing ?? '', await gateway.signIn(signing))
    return ''
  }
  if (name === 'operator') return await (await gateway.ops(path)).text()
  const cookie = stage.cookies.get(name ?? '')
  const results: string[] = []
  for (let count = 0; count < Number(times); count++) {
    const answer = await gateway.call(path, {
      method,
      ...(cookie !== undefined && { cookie }),
      ...(body !== undefined && { body, headers: { 'content-type': 'application/json' } })
    })
    stage.last.id = answer.headers.get('x-request-id') ?? ''
    const code = answer.json?.errorCode as string | undefined
    results.push(answer.status >= 400 && code ? `${answer.status} ${code}` : `${answer.status}`)
  }
  return results.join(', ')
}

const plain = (text: string) => text.replaceAll(/ +/g, ' ').replaceAll(/^ | $/gm, '')

/** Any lines, but the exit code at the end. */
const anyLines = '(?:(?!\\[\\d+\\]\\n$).*\\n)*'

function patternOf(wanted: string): RegExp {
  const lines = wanted.split('\n')
  const last = lines.findLastIndex(line => !/^\[\d+\]$/.test(line))
  const parts = lines.map((line, index) => {
    if (line === '…') return anyLines
    const text = `${line.split('…').map(RegExp.escape).join('.*')}\n`
    const before = index === 0 && line.startsWith('…') ? anyLines : ''
    return before + text + (index === last && line.endsWith('…') ? anyLines : '')
  })
  return new RegExp(`^${parts.join('')}$`)
}
