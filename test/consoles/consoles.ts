import type { ConsoleSpec } from './console.ts'
import { antDesignPro } from './consoles/ant-design-pro.ts'
import { arco } from './consoles/arco.ts'
import { baseResponse } from './consoles/base-response.ts'
import { ginVueAdmin } from './consoles/gin-vue-admin.ts'
import { jeecg } from './consoles/jeecg.ts'
import { ruoyi } from './consoles/ruoyi.ts'
import { soybean } from './consoles/soybean.ts'
import { tdesign } from './consoles/tdesign.ts'
import { vben } from './consoles/vben.ts'
import { vueElementAdmin } from './consoles/vue-element-admin.ts'
import { vuePureAdmin } from './consoles/vue-pure-admin.ts'
import { yudao } from './consoles/yudao.ts'

export const consoles: readonly ConsoleSpec[] = [
  antDesignPro,
  arco,
  baseResponse,
  ginVueAdmin,
  jeecg,
  ruoyi,
  soybean,
  tdesign,
  vben,
  vueElementAdmin,
  vuePureAdmin,
  yudao
]
