import { directus } from './backends/directus.ts'
import { drf } from './backends/drf.ts'
import { ginVueAdmin } from './backends/gin-vue-admin.ts'
import { jeecg } from './backends/jeecg.ts'
import { jsonApi } from './backends/json-api.ts'
import { ruoyi } from './backends/ruoyi.ts'
import { strapi } from './backends/strapi.ts'
import { yudao } from './backends/yudao.ts'

export const backends = [ruoyi, jeecg, yudao, ginVueAdmin, drf, strapi, directus, jsonApi]
