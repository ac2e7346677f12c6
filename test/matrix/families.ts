/** All consoles and all back-ends of the matrix. */
import type { BackendFamily } from './backend.ts'
import { presetsOfKind } from '../../src/config/schema/presets.ts'
import { backend as drf } from './backends/drf.ts'
import { consoles as drivers } from './consoles.ts'
import type { Driver } from './driver.ts'

export const consoles: readonly Driver[] = drivers.filter(({ name }) =>
  presetsOfKind('console').includes(name)
)

export const backends: readonly BackendFamily[] = [drf]
