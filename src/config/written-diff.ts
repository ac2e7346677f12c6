/**
 * Differences of two configs as lines of YAML, with `- ` and `+ ` in front, below the keys that
 * lead there. They are of the written config, which has references in the place of secrets.
 */
import { stringify } from 'yaml'
import { isRecord } from '../json/values.ts'
import type { Config, ConfigFile } from './schema/config.ts'
import { ownMember } from './schema/node.ts'

export type Written = Config['written']

export interface FileDiff {
  /** Such as `routes.yaml`. */
  readonly file: string
  /** Lines, each with two characters in front. */
  readonly diff: string
}

type Mapping = Readonly<Record<string, unknown>>

const files = ['gateway', 'routes', 'limits'] as const satisfies readonly ConfigFile[]

/** Of one file; further ones are counted. */
const maxLines = 2000

/** Only the files that differ. */
export function writtenDiff(before: Written, after: Written): FileDiff[] {
  return files.flatMap(file => {
    const lines = mappingLines(before[file], after[file], '')
    if (lines.length === 0) return []
    const shown = lines.slice(0, maxLines)
    const more = lines.length - shown.length
    const rest = more === 0 ? [] : [`  … and ${more} more lines`]
    return [{ file: `${file}.yaml`, diff: [...shown, ...rest].join('\n') }]
  })
}

function mappingLines(before: Mapping, after: Mapping, indent: string): string[] {
  const keys = new Set([...Object.keys(before), ...Object.keys(after)])
  return [...keys].flatMap(key => {
    const old = ownMember(before, key)
    const now = ownMember(after, key)
    if (JSON.stringify(old) === JSON.stringify(now)) return []
    if (isRecord(old) && isRecord(now)) {
      const inner = mappingLines(old, now, `${indent}  `)
      return inner.length === 0 ? [] : [...yamlLines({ [key]: null }, `  ${indent}`), ...inner]
    }
    return [
      ...(old === undefined ? [] : yamlLines({ [key]: old }, `- ${indent}`)),
      ...(now === undefined ? [] : yamlLines({ [key]: now }, `+ ${indent}`))
    ]
  })
}

/** A key alone stands for null. */
function yamlLines(value: unknown, front: string): string[] {
  const text = stringify(value, { lineWidth: 0, nullStr: '' })
  return text
    .trimEnd()
    .split('\n')
    .map(line => front + line.trimEnd())
}
