/** `init --from DIR`: compares a folder with what the back-end says now, and adds what is new. */
import { existsSync, readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { loadConfig } from '../../config/load/load.ts'
import type { LoadedConfig } from '../../config/schema/config.ts'
import { ConfigError, describeFault } from '../../config/schema/faults.ts'
import { firstUrlOf } from '../../config/schema/upstream-addresses.ts'
import { isObject } from '../../config/schema/visit.ts'
import { tryConfig } from '../../dry-run/try-config.ts'
import { CommandError, type Io } from '../command.ts'
import { loadWith } from '../config-change.ts'
import { addMember, parseYamlText, valueOf } from '../yaml-text.ts'
import { type PresetSource, sourceParts } from './preset-source.ts'
import type { Files } from './folder.ts'
import { flow } from './yaml.ts'

type Mapping = Readonly<Record<string, unknown>>

/** The answers of a folder in place of its operator. */
export interface Existing {
  /** Options of `init` that need not be named. */
  readonly values: Readonly<Record<string, string>>
  readonly source?: PresetSource
}

/** @throws ConfigError for a folder with faults */
export function readExisting(folder: string, env: Io['env']): Existing {
  const { gateway, routes } = loadConfig(folder, env)
  const upstream = routes.upstreams['backend']
  if (upstream === undefined) {
    throw new CommandError(`routes.yaml of ${folder} has no upstream "backend".`)
  }
  const at = gateway.login.sources.find(({ kind }) => kind === 'upstream-login')
  const source = at === undefined ? undefined : sourceParts(at, upstream.headers ?? {})
  return {
    values: {
      'backend-url': firstUrlOf(upstream),
      'console': gateway.extends ?? 'none',
      'sign-in': at === undefined ? 'file' : 'backend',
      ...(gateway.backend !== undefined && { backend: gateway.backend })
    },
    ...(source !== undefined && { source })
  }
}

export interface Comparison {
  /** Lines for people: `+` is new, `~` differs and stays. */
  readonly lines: readonly string[]
  /** The files that change or are new, in the order of writing; empty for nothing to add. */
  readonly files: Files
}

/** Only these sections get members: the others hold what operators decide. */
const growing = ['routes', 'shapes', 'expect'] as const
const compared = ['gateway.yaml', 'routes.yaml', 'limits.yaml']

export function compare(folder: string, proposed: Files): Comparison {
  const lines: string[] = []
  const files = new Map<string, string>()
  const textOf = (name: string) => readFileSync(resolve(folder, name), 'utf8')
  for (const name of compared) {
    const [mine, theirs] = [mappingOf(textOf(name)), mappingOf(proposed.get(name) ?? '')]
    for (const { path, value, isMissing } of differences(mine, theirs)) {
      const isNew = name === 'routes.yaml' && isGrowing(path)
      const verb = isMissing ? 'is not there, and is not added' : 'stays'
      if (!isNew) lines.push(`~ ${name} ${path.join('.')}: ${verb}; init has ${brief(value)}`)
    }
  }
  const text = textOf('routes.yaml')
  const additions = additionsOf(mappingOf(text), mappingOf(proposed.get('routes.yaml') ?? ''))
  let changed = text
  for (const { section, name, value } of additions) {
    lines.push(`+ routes.yaml ${section}.${name}: ${brief(value)}`)
    changed = addMember(changed, [section], name, value)
  }
  for (const { section, name } of additions) {
    const contract = `contracts/${name}.schema.json`
    const schema = section === 'routes' ? proposed.get(contract) : undefined
    if (schema === undefined || existsSync(resolve(folder, contract))) continue
    lines.push(`+ ${contract}`)
    files.set(contract, schema)
  }
  // After the contracts that it names: a running gateway may read the folder at any time.
  if (changed !== text) files.set('routes.yaml', changed)
  return { lines, files }
}

function mappingOf(text: string): Mapping {
  const value = valueOf(parseYamlText(text))
  return isObject(value) ? value : {}
}

interface Difference {
  readonly path: readonly string[]
  readonly value: unknown
  readonly isMissing: boolean
}

/** The members of `theirs` that `mine` lacks or has with another value. */
function differences(mine: Mapping, theirs: Mapping, path: readonly string[] = []): Difference[] {
  return Object.entries(theirs).flatMap(([key, value]): Difference[] => {
    const here = [...path, key]
    const other = mine[key]
    if (isDeepStrictEqual(other, value)) return []
    if (isObject(other) && isObject(value)) return differences(other, value, here)
    return [{ path: here, value, isMissing: !Object.hasOwn(mine, key) }]
  })
}

function isGrowing(path: readonly string[]): boolean {
  return path.length <= 2 && (growing as readonly string[]).includes(path[0] ?? '')
}

interface Addition {
  readonly section: (typeof growing)[number]
  readonly name: string
  readonly value: unknown
}

/**
 * New routes, and the shapes and expectations that they need. A shape or expectation that was
 * removed by hand stays removed.
 */
function additionsOf(mine: Mapping, theirs: Mapping): Addition[] {
  const [myRoutes, newRoutes] = [sectionOf(mine, 'routes'), sectionOf(theirs, 'routes')]
  const paths = new Set(Object.values(myRoutes).map(pathOf))
  const routes = Object.entries(newRoutes).filter(
    ([name, route]) => !Object.hasOwn(myRoutes, name) && !paths.has(pathOf(route))
  )
  const shapes = new Map<string, unknown>()
  const need = (name: string): void => {
    const steps = sectionOf(theirs, 'shapes')[name]
    if (shapes.has(name) || steps === undefined) return
    if (Object.hasOwn(sectionOf(mine, 'shapes'), name)) return
    shapes.set(name, steps)
    for (const step of steps as ReadonlyArray<{ readonly use?: string }>) need(step.use ?? '')
  }
  for (const [, route] of routes) need(String((route as { readonly shape?: string }).shape))
  const names = routes.flatMap(([name]) => [`${name}-needs-sign-in`, name])
  const expect = sectionOf(theirs, 'expect')
  const expectations = names
    .filter(name => Object.hasOwn(expect, name) && !Object.hasOwn(sectionOf(mine, 'expect'), name))
    .map(name => [name, expect[name]] as const)
  const ofSection = (section: Addition['section'], members: Iterable<readonly [string, unknown]>) =>
    [...members].map(([name, value]) => ({ section, name, value }))
  return [
    ...ofSection('routes', routes),
    ...ofSection('shapes', shapes),
    ...ofSection('expect', expectations)
  ]
}

function sectionOf(file: Mapping, section: Addition['section']): Mapping {
  const value = file[section]
  return isObject(value) ? value : {}
}

function pathOf(route: unknown): unknown {
  return isObject(route) ? route['path'] : undefined
}

const maxBrief = 70

function brief(value: unknown): string {
  const text = flow(value)
  return text.length > maxBrief ? `${text.slice(0, maxBrief - 1)}…` : text
}

/** The faults that the folder would have with these files. */
export async function faultsOfChange(
  folder: string,
  files: Files,
  env: Io['env']
): Promise<string[]> {
  const texts = new Map([...files].map(([name, text]) => [resolve(folder, name), text]))
  let config: LoadedConfig
  try {
    config = loadWith(folder, texts, env)
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    return error.faults.filter(({ severity }) => severity === 'fault').map(describeFault)
  }
  return (await tryConfig(config)).map(describeFault)
}
