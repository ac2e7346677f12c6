import { presetText } from '../config/read/presets.ts'
import { nearest } from '../config/schema/faults.ts'
import { presetKinds, presetsOfKind } from '../config/schema/presets.ts'
import { CommandError, type Invocation } from './command.ts'
import { aligned, jsonText } from './output.ts'

export async function listPresets({ json, io }: Invocation): Promise<void> {
  const all = allPresets()
  const rows = all.map(({ kind, name, summary }) => [`${kind}/${name}`, summary])
  io.stdout.write(json ? jsonText(all) : `${aligned(rows).join('\n')}\n`)
}

/** The name may be preceded by its kind, such as `console/ruoyi`; without, it may be two. */
export async function showPreset({ rest: [name = ''], io }: Invocation): Promise<void> {
  const all = allPresets()
  const found = all.filter(({ kind, name: own }) => own === name || `${kind}/${own}` === name)
  if (found.length === 0) {
    const names = all.map(preset => preset.name)
    throw new CommandError(`There is no preset "${name}".${nearest(name, names)}`)
  }
  io.stdout.write(found.map(preset => presetText(preset.kind, preset.name)).join('\n---\n'))
}

function allPresets() {
  return presetKinds.flatMap(kind =>
    presetsOfKind(kind).map(name => {
      const [first = ''] = presetText(kind, name).split('\n', 1)
      return { kind, name, summary: first.replace(/^# /, '') }
    })
  )
}
