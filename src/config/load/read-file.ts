/** One config file: merged → references → defaults → schema checked → normalised. */
import { resolve } from 'node:path'
import type { Static, TSchema } from 'typebox'
import type { Fault } from '../schema/faults.ts'
import { schemaFaults } from '../schema/schema-faults.ts'
import { isOneOrMany, toBytes, toMilliseconds } from '../schema/primitives.ts'
import { asNode, isObject, type Node, type Path, visit } from '../schema/visit.ts'
import { withEnvFile } from './env-file.ts'
import { createInputs, type Inputs } from './inputs.ts'
import { type Layers, type MergedFile, mergeLayers } from './layers.ts'
import { type Environment, resolveReferences } from './references.ts'
import { runSteps, type Steps } from '../schema/steps.ts'
import { copyTree, hideSecrets } from './written.ts'

export interface LoadedFile<T> extends Omit<MergedFile, 'value'> {
  readonly value: T
  /** The file and its presets before references and defaults, without any secret. */
  readonly written: Readonly<Record<string, unknown>>
}

interface CompleteContext {
  readonly environment: Environment
  readonly inputs: Inputs
  readonly faults: Fault[]
  /** A relative `file:PATH` starts here. */
  readonly folder: string
}

/** For a command that reads one file of a folder, whose faults it collects. */
export function contextOfFolder(folder: string, environment: Environment): CompleteContext {
  const inputs = createInputs()
  return {
    environment: withEnvFile(folder, environment, inputs),
    inputs,
    faults: [],
    folder: resolve(folder)
  }
}

/** Completes and checks one config file by itself. */
export const completeFile = <T extends TSchema>(
  schema: T,
  layers: Layers,
  context: CompleteContext
): LoadedFile<Static<T>> => runSteps(completeSteps(schema, layers, context))

export function* completeSteps<T extends TSchema>(
  schema: T,
  layers: Layers,
  { environment, inputs, faults, folder }: CompleteContext
): Steps<LoadedFile<Static<T>>> {
  const node = asNode(schema)
  const { value, ...merged } = mergeLayers(node, layers)
  const report = (path: Path, message: string) => {
    faults.push(merged.fault(path, message))
  }
  dropEmptySections(node, value)
  const written = copyTree(value)
  hideSecrets(node, written)
  yield
  resolveReferences(node, value, { environment, folder, read: inputs.read, report })
  yield
  fillDefaults(node, value)
  yield
  schemaFaults(node, value, report)
  yield
  return { ...merged, written, value: normalise(node, value) as Static<T> }
}

/** `server:` with nothing below it is null in YAML, but is meant as "nothing set". */
function dropEmptySections(schema: Node, value: unknown): void {
  visit(schema, value, ({ schema: { properties }, value: mapping }) => {
    if (!isObject(mapping) || properties === undefined) return
    for (const key of Object.keys(mapping)) {
      if (mapping[key] === null && Object.hasOwn(properties, key)) delete mapping[key]
    }
  })
}

function fillDefaults(schema: Node, value: unknown): void {
  visit(schema, value, ({ schema: { properties = {} }, value: current, put }) => {
    if (Array.isArray(current) && current.includes(undefined)) {
      put(current.filter(item => item !== undefined))
    }
    if (!isObject(current)) return
    for (const [key, member] of Object.entries(properties)) {
      if (current[key] === undefined && member.default !== undefined) {
        current[key] = structuredClone(member.default)
      }
    }
  })
}

/** Brings each value to one form: milliseconds, bytes, lists. */
function normalise(schema: Node, value: unknown): unknown {
  return visit(schema, value, ({ schema: at, declared, value: written, put }) => {
    // Anything but a text is a fault already, and `String()` throws on some objects.
    if (typeof written === 'string') {
      if (at.format === 'x-duration') put(toMilliseconds(written))
      if (at.format === 'x-size') put(toBytes(written))
    }
    if (declared.anyOf?.some(isOneOrMany) === true && !Array.isArray(written)) put([written])
  })
}
