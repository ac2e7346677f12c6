/** The drivers of console presets, and what their users see of the neutral forms. */
import { consoles } from './consoles.ts'
import { vbenRefreshing } from './consoles/vben.ts'
import type { Driver } from './driver.ts'

interface Expected {
  /** Default: the name of the preset. */
  readonly title?: string
  readonly menu?: readonly string[]
  readonly permissions?: readonly string[]
  readonly roles?: readonly string[]
  /** The request layer hands a form nothing but a message. */
  readonly noFieldErrors?: boolean
}

const permissions = ['*', 'read']
const noFieldErrors = true

const expected: Readonly<Record<string, Expected>> = {
  'ant-design-pro': { permissions: ['canAdmin'] },
  'arco': { noFieldErrors },
  'base-response': { permissions: ['canAdmin'], roles: ['Admin'] },
  'gin-vue-admin': { noFieldErrors, menu: ['仪表盘'] },
  'jeecg': { noFieldErrors, permissions },
  'ruoyi': { noFieldErrors, permissions },
  'soybean': { menu: ['home'], permissions },
  'tdesign': { noFieldErrors },
  'vben': { permissions },
  'vue-element-admin': { noFieldErrors },
  'vue-pure-admin': { permissions },
  'yudao': { noFieldErrors, permissions }
}

export const drivers: ReadonlyArray<readonly [Driver, Expected]> = [
  ...consoles.map(driver => [driver, expected[driver.name] ?? {}] as const),
  [vbenRefreshing, { permissions, title: 'vben with enableRefreshToken' }]
]

/** In the language of the console. */
export const wrongPassword = ['The user name or the password is wrong.', '用户名或密码错误。']
