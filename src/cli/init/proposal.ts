/** The files that `init` proposes: tried as a whole before anything is written. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadConfig } from '../../config/load/load.ts'
import type { Environment } from '../../config/load/references.ts'
import type { LoadedConfig } from '../../config/schema/config.ts'
import { ConfigError, type Fault } from '../../config/schema/faults.ts'
import { learnSchema } from '../../contract/learn.ts'
import { tryConfig } from '../../dry-run/try-config.ts'
import { isRecord, type Json } from '../../json/values.ts'
import { schemaTexts } from '../../config/schema/for-editors.ts'
import { shapedResponse } from './shaped-response.ts'
import { type Files, ignoreFile, secretFile, writeFiles } from './folder.ts'
import { gatewayFile } from './gateway-file.ts'
import { limitsFile } from './limits-file.ts'
import type { Findings } from './model.ts'
import { isMapping } from './redaction.ts'
import { routesFile } from './routes-file.ts'

export interface Proposal {
  readonly files: Files
  /** The console's responses, by route: the data, without the envelope. */
  readonly shaped: ReadonlyMap<string, Json>
  /** Warnings of `check`. */
  readonly warnings: readonly string[]
  /** Why the files cannot be used; empty if they can. */
  readonly faults: readonly string[]
}

/** @param folder where the files will stand */
export async function propose(
  findings: Findings,
  folder: string,
  env: Environment
): Promise<Proposal> {
  const draft = mkdtempSync(join(tmpdir(), 'console-gateway-init-'))
  try {
    return await proposeIn(draft, findings, folder, env)
  } finally {
    rmSync(draft, { recursive: true, force: true })
  }
}

async function proposeIn(
  draft: string,
  findings: Findings,
  folder: string,
  env: Environment
): Promise<Proposal> {
  const files = new Map(filesOf(findings, folder))
  // Found from the draft, so that a relative path of the console means the same in both places.
  files.set('gateway.yaml', gatewayFile(findings, draft))
  for (const { name } of findings.routes) files.set(contractName(name), '{}\n')
  writeFiles(draft, files, 'w')
  const environment = { ...env, SESSION_SECRET: newSecret() }
  let config: LoadedConfig
  try {
    config = loadConfig(draft, environment)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return { files, shaped: new Map(), warnings: [], faults: faultTexts(error) }
  }
  const shaped = shapeAll(config, findings)
  for (const [name, value] of shaped) files.set(contractName(name), contractText(name, value))
  const failed = (await tryConfig(config)).map(({ path }) => path.split('.'))
  const failing = failed.filter(([key]) => key === 'expect').map(([, name]) => name ?? '')
  files.set('routes.yaml', routesFile(findings, new Set(failing)))
  writeFiles(draft, files, 'w')
  const faults = await faultsOf(draft, environment)
  files.set('gateway.yaml', gatewayFile(findings, folder))
  return { files, shaped, warnings: texts(config.warnings), faults }
}

async function faultsOf(draft: string, environment: Record<string, string | undefined>) {
  try {
    return texts(await tryConfig(loadConfig(draft, environment)))
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return faultTexts(error)
  }
}

function faultTexts({ faults }: ConfigError): string[] {
  return texts(faults.filter(({ severity }) => severity === 'fault'))
}

/** Without the file, which is one of the draft. */
function texts(faults: readonly Fault[]): string[] {
  return faults.map(({ path, message }) => `${path}: ${message}`)
}

function filesOf(findings: Findings, folder: string): Array<readonly [string, string]> {
  const schemas = schemaTexts().map(([name, text]) => [`schema/${name}.schema.json`, text] as const)
  const { fileUser } = findings
  return [
    ['gateway.yaml', gatewayFile(findings, folder)],
    ['routes.yaml', routesFile(findings, new Set())],
    ['limits.yaml', limitsFile(findings)],
    ...(fileUser === undefined ? [] : [['users.yaml', usersFile(fileUser)] as const]),
    [secretFile, `SESSION_SECRET=${newSecret()}\n`],
    [ignoreFile, `# Secrets stay on this machine.\n${secretFile}\n`],
    ...schemas
  ]
}

function usersFile({ username, hash, role }: NonNullable<Findings['fileUser']>): string {
  return `# yaml-language-server: $schema=schema/users.schema.json
# The users. \`console-gateway users add NAME\` adds one; a change takes effect without a restart.

users:
  ${JSON.stringify(username)}:
    password: ${hash}
    roles: [${JSON.stringify(role)}]
`
}

function newSecret(): string {
  return randomBytes(32).toString('base64url')
}

function contractName(route: string): string {
  return `contracts/${route}.schema.json`
}

function contractText(route: string, value: Json): string {
  const schema = {
    $schema: 'https://json-schema.org/draft/2020-12/schema',
    description: `The responses of the route ${route}, learned from one response.`,
    ...learnSchema([withoutDataNames(value)])
  }
  return `${JSON.stringify(schema, null, 2)}\n`
}

/** Names that are data become numbers, which a contract does not list. */
function withoutDataNames(value: Json): Json {
  if (Array.isArray(value)) return value.map(withoutDataNames)
  if (!isRecord(value)) return value
  const isData = isMapping(value)
  return Object.fromEntries(
    Object.entries(value).map(([name, member], index) => [
      isData ? String(index) : name,
      withoutDataNames(member)
    ])
  )
}

function shapeAll(config: LoadedConfig, { routes }: Findings): Map<string, Json> {
  return new Map(
    routes.map(({ name, response }) => [name, shapedResponse(config, name, response.body)])
  )
}
