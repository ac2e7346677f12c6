import { presetText } from '../config/read/presets.ts'
import { nearest } from '../config/schema/faults.ts'
import { presetKinds, presetsOfKind } from '../config/schema/presets.ts'
import { CommandError, type Invocation } from './command.ts'
import { aligned } from './output.ts'

export async function listPresets() {
  const json = allPresets()
  const rows = json.map(({ kind, name, summary }) => [`${kind}/${name}`, summary])
  return { json, text: aligned(rows).join('\n') }
}

/** The name may be preceded by its kind, such as `console/ruoyi`; without, it may be two. */
export async function showPreset({ rest: [name = ''] }: Invocation) {
  const all = allPresets()
  const found = all.filter(({ kind, name: own }) => own === name || `${kind}/${own}` === name)
  if (found.length === 0) {
    const names = all.map(preset => preset.name)
    throw new CommandError(`There is no preset "${name}".${nearest(name, names)}`)
  }
  return { painted: found.map(each => presetText(each.kind, each.name)).join('\n---\n') }
}

function allPresets() {
  return presetKinds.flatMap(kind =>
    presetsOfKind(kind).map(name => {
      const [first = ''] = presetText(kind, name).split('\n', 1)
      return { kind, name, summary: first.replace(/^# /, '') }
    })
  )
}
