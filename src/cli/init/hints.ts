/** Collects hints from documents and recordings, before `init` looks for itself. */
import { existsSync, readFileSync, statSync } from 'node:fs'
import { parse as parseYaml } from 'yaml'
import { readJson } from '../../json/body.ts'
import { isRecord, type Json, valueAt } from '../../json/values.ts'
import { CommandError } from '../command.ts'
import type { BackendClient } from './client.ts'
import { readHar, type Recording } from './har.ts'
import type { ConsoleHabits } from './model.ts'
import { type ApiHints, readOpenApi } from './openapi.ts'
import type { Redaction } from './redaction.ts'

export interface Hints {
  readonly api: ApiHints
  readonly habits: ConsoleHabits
  /** All paths of a recording. */
  readonly consolePaths: readonly string[]
  /** Names the document or recording that was read. */
  readonly from?: string
}

interface HintOptions {
  readonly client: BackendClient
  readonly redaction: Redaction
  readonly openapi?: string | undefined
  readonly har?: string | undefined
  /** Whether to look for a document at common places. */
  readonly search: boolean
}

const maxFileBytes = 256 * 1024 * 1024
const commonPlaces = [
  '/v3/api-docs',
  '/openapi.json',
  '/api/openapi.json',
  '/swagger/v1/swagger.json',
  '/swagger.json',
  '/api-docs',
  '/v2/api-docs'
]

const noHints: ApiHints = { userPaths: [], routes: [], skipped: 0 }

export async function readHints(options: HintOptions): Promise<Hints> {
  const { har, openapi, redaction, client } = options
  const recording: Recording | undefined =
    har === undefined ? undefined : readHar(jsonOf(har), redaction)
  const document = await documentOf(options)
  const base =
    new URL(client.url).pathname.replace('/', '') === '' ? '' : new URL(client.url).pathname
  const documented = document === undefined ? noHints : readOpenApi(document.value, base)
  const read = [har, document?.place].filter(place => place !== undefined)
  return {
    api: joinHints(recording?.hints ?? noHints, documented, openapi !== undefined),
    habits: recording?.habits ?? {},
    consolePaths: recording?.paths ?? [],
    ...(read.length > 0 && { from: read.join(' and ') })
  }
}

/** The recording shows what the console needs; a document only what there is. */
function joinHints(recorded: ApiHints, documented: ApiHints, isNamed: boolean): ApiHints {
  const login = documented.login ?? recorded.login
  const logout = documented.logout ?? recorded.logout
  const isRecorded = recorded.routes.length > 0
  const names = new Set(recorded.routes.map(({ path }) => path))
  const others = documented.routes.filter(({ path }) => !names.has(path))
  return {
    ...(login !== undefined && { login }),
    ...(logout !== undefined && { logout }),
    userPaths: [...recorded.userPaths, ...documented.userPaths],
    routes: isRecorded && !isNamed ? recorded.routes : [...recorded.routes, ...others],
    skipped: recorded.skipped + documented.skipped
  }
}

interface ApiDocument {
  readonly place: string
  readonly value: Json
}

async function documentOf(options: HintOptions): Promise<ApiDocument | undefined> {
  const { openapi, client, search } = options
  if (openapi !== undefined) return await namedDocument(openapi, client)
  if (!search) return undefined
  for (const path of commonPlaces) {
    const { body } = await client.get(path)
    if (isDocument(body)) return { place: path, value: body }
  }
  return undefined
}

/** A file, or a path or URL at the back-end: no other host is asked. */
async function namedDocument(openapi: string, client: BackendClient): Promise<ApiDocument> {
  if (existsSync(openapi)) {
    const value = /\.ya?ml$/.test(openapi) ? yamlOf(openapi) : jsonOf(openapi)
    return asDocument(openapi, value)
  }
  const path = openapi.startsWith(`${client.url}/`) ? openapi.slice(client.url.length) : openapi
  if (!path.startsWith('/')) {
    throw new CommandError(`${openapi} is neither a file nor a path at ${client.url}.`)
  }
  const { body, isJson, text } = await client.get(path)
  return asDocument(path, isJson ? body : parseYamlText(text, path))
}

function asDocument(place: string, value: Json): ApiDocument {
  if (isDocument(value)) return { place, value }
  throw new CommandError(`${place} is not an OpenAPI document: it has no "paths".`)
}

function isDocument(value: Json): boolean {
  return isRecord(valueAt(value, ['paths']))
}

function yamlOf(file: string): Json {
  return parseYamlText(textOf(file).toString('utf8'), file)
}

function parseYamlText(text: string, place: string): Json {
  try {
    return parseYaml(text, { maxAliasCount: 50 })
  } catch {
    throw new CommandError(`${place} is neither JSON nor YAML.`)
  }
}

function jsonOf(file: string): Json {
  const bytes = textOf(file)
  try {
    return readJson(bytes, {}, maxFileBytes)
  } catch {
    throw new CommandError(`${file} is not valid JSON.`)
  }
}

function textOf(file: string): Buffer {
  try {
    if (statSync(file).size > maxFileBytes) throw new CommandError(`${file} is too large.`)
    return readFileSync(file)
  } catch (error) {
    if (error instanceof CommandError) throw error
    const { code = 'unknown reason' } = error as NodeJS.ErrnoException
    throw new CommandError(`${file} cannot be read (${code}).`)
  }
}
