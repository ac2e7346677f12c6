/** `presets`: lists and shows the presets, and what a config folder makes of them. */
import { basename, dirname } from 'node:path'
import { Document, isMap, isScalar, isSeq } from 'yaml'
import { placeAt } from '../config/read/document.ts'
import { type Folders, openFolder } from '../config/read/files.ts'
import { folderSteps, presetText, writtenOf } from '../config/read/presets.ts'
import { runSteps } from '../config/schema/steps.ts'
import type { Place } from '../config/read/yaml-values.ts'
import { nearest } from '../config/schema/faults.ts'
import { presetKinds, presetsOfKind } from '../config/schema/presets.ts'
import type { Path } from '../config/schema/node.ts'
import { CommandError, type Invocation, type Io } from './command.ts'
import { aligned, jsonText } from './output.ts'

export async function listPresets({ json, io }: Invocation): Promise<number> {
  const all = allPresets()
  const rows = all.map(({ kind, name, summary }) => [`${kind}/${name}`, summary])
  io.stdout.write(json ? jsonText(all) : `${aligned(rows).join('\n')}\n`)
  return 0
}

export async function showPreset({ configs, rest: [name], io }: Invocation): Promise<number> {
  io.stdout.write(name === undefined ? mergedText(configs, io.env) : textOf(name))
  return 0
}

function allPresets() {
  return presetKinds.flatMap(kind =>
    presetsOfKind(kind).map(name => {
      const [first = ''] = presetText(kind, name).split('\n', 1)
      return { kind, name, summary: first.replace(/^# /, '') }
    })
  )
}

/** @param name may be preceded by its kind, such as `console/ruoyi`; without, it may be two */
function textOf(name: string): string {
  const all = allPresets()
  const found = all.filter(({ kind, name: own }) => own === name || `${kind}/${own}` === name)
  if (found.length === 0) {
    const names = all.map(preset => preset.name)
    throw new CommandError(`There is no preset "${name}".${nearest(name, names)}`)
  }
  return found.map(preset => presetText(preset.kind, preset.name)).join('\n---\n')
}

function mergedText(folders: Folders, env: Io['env']): string {
  const tree = runSteps(folderSteps(openFolder(folders, env)))
  const originOf: OriginOf = path => originAt(placeAt(tree, path))
  return Object.entries(writtenOf(tree))
    .map(([file, value]) => {
      const document = new Document(value)
      annotate(document.contents, [], originOf)
      return `# ${file}.yaml\n${document.toString({ lineWidth: 100 })}`
    })
    .join('\n')
}

/** Such as `routes.yaml:12` and `console/vben.yaml:7`. */
type OriginOf = (path: Path) => string | undefined

function originAt(place: Place | undefined): string | undefined {
  if (place === undefined) return undefined
  const { file, preset, line } = place
  const folder = preset === undefined ? '' : `${basename(dirname(file))}/`
  return `${folder}${basename(file)}:${line}`
}

/** Puts the place of each scalar behind it, and that of each list above it. */
function annotate(node: unknown, path: Path, originOf: OriginOf): void {
  if (!isMap(node)) return
  for (const { key, value } of node.items) {
    if (!isScalar(key)) continue
    const place = [...path, String(key.value)]
    const origin = originOf(place)
    const comment = origin === undefined ? '' : ` ${origin}`
    if (isScalar(value)) value.comment = comment
    if (isSeq(value)) key.commentBefore = comment
    else annotate(value, place, originOf)
  }
}
