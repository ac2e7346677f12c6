/** All consoles and all back-ends of the matrix. */
import type { BackendFamily } from './backend.ts'
import { backend as drf } from './backends/drf.ts'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { baseResponse } from './consoles/base-response.ts'
import type { Driver } from './driver.ts'

export const consoles: readonly Driver[] = [antDesignPro, baseResponse]

export const backends: readonly BackendFamily[] = [drf]
