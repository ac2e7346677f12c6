/** The back-end of each family. */
import type { BackendFamily } from './backend.ts'
import { backend as directus } from './backends/directus.ts'
import { backend as drf } from './backends/drf.ts'
import { backend as ginVueAdmin } from './backends/gin-vue-admin.ts'
import { backend as jeecg } from './backends/jeecg.ts'
import { backend as jsonApi } from './backends/json-api.ts'
import { backend as ruoyi } from './backends/ruoyi.ts'
import { backend as strapi } from './backends/strapi.ts'
import { backend as yudao } from './backends/yudao.ts'

export const backends: readonly BackendFamily[] = [
  ruoyi,
  jeecg,
  yudao,
  ginVueAdmin,
  drf,
  strapi,
  directus,
  jsonApi
]
