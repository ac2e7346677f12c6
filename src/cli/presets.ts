/** `presets`: lists and shows the presets, and what a config folder makes of them. */
import { Document, isMap, isScalar, isSeq } from 'yaml'
import { mergedConfig } from '../config/load/merged.ts'
import { presetText } from '../config/load/presets.ts'
import { yamlValue } from '../config/load/written-diff.ts'
import { nearest } from '../config/schema/faults.ts'
import { type PresetKind, presetKinds, presetsOfKind } from '../config/schema/presets.ts'
import type { Path } from '../config/schema/visit.ts'
import type { Candidate } from './complete.ts'
import { type Command, CommandError } from './command.ts'

interface Listed {
  readonly kind: PresetKind
  readonly name: string
  readonly summary: string
}

export const presets: Command = {
  summary: 'list and show the presets of consoles and back-ends',
  ways: [{ takes: ['json'] }, { words: 'show PRESET' }, { words: 'show', needs: ['merged'] }],
  details: `
A preset is made of keys of the config files. gateway.yaml names a console's preset in
"extends" and a back-end's in "backend"; the files of the folder override them key by key.
Where a console and a back-end have the same name, console/NAME and backend/NAME tell them
apart. With --merged: what the config folder and its presets say together, without
defaults, each key with its file and line. Secrets are shown as references.

Examples:
  console-gateway presets
  console-gateway presets show ant-design-pro
  console-gateway presets show --merged -c /etc/console-gateway
Exit codes: 1 if a file of the config folder cannot be read.`,
  options: {
    merged: { type: 'boolean', description: 'show the config folder merged with its presets' }
  },
  run: async ({ config: folder, rest: [action, name], json }) => {
    if (action === undefined) {
      const all = listPresets()
      process.stdout.write(json ? `${JSON.stringify(all, null, 2)}\n` : listText(all))
      return 0
    }
    process.stdout.write(name === undefined ? mergedText(folder) : textOf(name))
    return 0
  }
}

function listPresets(): Listed[] {
  return presetKinds.flatMap(kind =>
    presetsOfKind(kind).map(name => {
      const [first = ''] = presetText(kind, name).split('\n', 1)
      return { kind, name, summary: first.replace(/^# /, '') }
    })
  )
}

/** The names for completion. */
export function presetCandidates(): Candidate[] {
  return listPresets().map(({ name, summary }) => ({ value: name, about: summary }))
}

const titles: Readonly<Record<PresetKind, string>> = {
  console: 'Consoles (extends)',
  backend: 'Back-ends (backend)'
}

function listText(all: readonly Listed[]): string {
  const width = Math.max(...all.map(({ name }) => name.length)) + 2
  const sections = presetKinds.map(kind => {
    const lines = all
      .filter(each => each.kind === kind)
      .map(({ name, summary }) => `  ${name.padEnd(width)}${summary}\n`)
    return `${titles[kind]}:\n${lines.join('')}`
  })
  return sections.join('\n')
}

/** @param name may be preceded by its kind, such as `console/ruoyi` */
function textOf(name: string): string {
  const texts = listPresets()
    .filter(preset => preset.name === name || `${preset.kind}/${preset.name}` === name)
    .map(preset => ({ ...preset, text: presetText(preset.kind, preset.name) }))
  if (texts.length === 0) {
    const names = listPresets().map(preset => preset.name)
    throw new CommandError(`There is no preset "${name}".${nearest(name, names)}`)
  }
  if (texts.length === 1) return texts.map(({ text }) => text).join('')
  return texts.map(({ kind, text }) => `# presets/${kind}/${name}.yaml\n${text}`).join('\n---\n')
}

function mergedText(folder: string): string {
  const files = Object.entries(mergedConfig(folder, process.env))
  return files
    .map(([file, { value, originOf }]) => {
      const document = new Document(yamlValue(value))
      annotate(document.contents, [], originOf)
      return `# ${file}.yaml\n${document.toString({ lineWidth: 100 })}`
    })
    .join('\n')
}

type OriginOf = (path: Path) => string | undefined

/** Puts the place of each scalar behind it, and that of each list above it. */
function annotate(node: unknown, path: Path, originOf: OriginOf): void {
  if (isSeq(node)) {
    for (const [index, item] of node.items.entries()) annotate(item, [...path, index], originOf)
  }
  if (!isMap(node)) return
  for (const { key, value } of node.items) {
    if (!isScalar(key)) continue
    const place = [...path, String(key.value)]
    const origin = originOf(place)
    const comment = origin === undefined ? '' : ` ${origin}`
    if (isScalar(value)) value.comment = comment
    // Only sources are merged item by item: every other list stands whole in one file.
    if (!isSeq(value) || place.join('.') === 'login.sources') annotate(value, place, originOf)
    else key.commentBefore = comment
  }
}
