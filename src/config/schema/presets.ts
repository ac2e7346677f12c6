/** `extends` and `backend` of `gateway.yaml`: the presets that the config folder builds on. */
import { Type } from 'typebox'
import { may } from './primitives.ts'

/** The files of `presets/`: the members of each are parts of the config files. */
const presetNames = {
  console: [
    'ant-design-pro',
    'arco',
    'base-response',
    'gin-vue-admin',
    'jeecg',
    'ruoyi',
    'soybean',
    'tdesign',
    'vben',
    'vue-element-admin',
    'vue-pure-admin',
    'yudao'
  ],
  backend: ['directus', 'drf', 'gin-vue-admin', 'jeecg', 'json-api', 'ruoyi', 'strapi', 'yudao']
} as const satisfies Record<string, readonly string[]>

export type PresetKind = keyof typeof presetNames

export const presetKinds = Object.keys(presetNames) as PresetKind[]

export function presetsOfKind(kind: PresetKind): readonly string[] {
  return presetNames[kind]
}

/** The key of `gateway.yaml` that names a preset of each kind. */
export const presetKeys = { console: 'extends', backend: 'backend' } as const satisfies Record<
  PresetKind,
  string
>

export const presetChoice = {
  extends: may.oneOf(
    [...presetNames.console],
    'A preset for the console: what its family of consoles calls and expects. The files of ' +
      'this folder override it key by key; `null` removes a key of it. `console-gateway ' +
      'presets show NAME` prints it.'
  ),
  backend: may.oneOf(
    [...presetNames.backend],
    'A preset for the back-end, which is the upstream `backend`. It is applied after ' +
      '`extends` and before the files of this folder.'
  )
}

export const presetChoiceSchema = Type.Object(presetChoice)

export interface PresetChoice {
  readonly extends?: string
  readonly backend?: string
}
