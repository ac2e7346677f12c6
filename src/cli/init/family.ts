/** Recognises the family of a console by the paths that it calls. */
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'

/** Paths that only this family calls; all of them must be there. */
const signatures: ReadonlyArray<readonly [preset: string, ...paths: readonly string[]]> = [
  ['jeecg', '/sys/permission/getUserPermissionByToken'],
  ['ruoyi', '/captchaImage', '/getRouters'],
  ['yudao', '/system/auth/get-permission-info'],
  ['gin-vue-admin', '/jwt/jsonInBlacklist'],
  ['soybean', '/auth/getUserInfo', '/auth/refreshToken'],
  ['vben', '/auth/codes', '/menu/all'],
  ['vue-pure-admin', '/refresh-token', '/get-async-routes'],
  ['vue-element-admin', '/vue-element-admin/user/login'],
  ['tdesign', '/get-menu-list-i18n'],
  ['arco', '/api/user/login', '/api/user/menu'],
  ['ant-design-pro', '/api/login/account', '/api/login/outLogin'],
  ['base-response', '/api/auth/admin/login', '/api/account/profile']
]

const maxFiles = 500
const maxBytes = 64 * 1024 * 1024

/** The family of a folder of built files, by the paths in its scripts. */
export function familyOfFiles(root: string): string | undefined {
  let rest = maxBytes
  const scripts = namesIn(root)
    .filter(name => /\.m?js$/.test(name) && !/(^|\/)node_modules\//.test(name))
    .slice(0, maxFiles)
    .flatMap(name => {
      const text = textOf(join(root, name), rest)
      rest -= text?.length ?? 0
      return text ?? []
    })
  const has = (path: string) => scripts.some(script => script.includes(path))
  return signatures.find(([, ...paths]) => paths.every(has))?.[0]
}

function namesIn(root: string): string[] {
  try {
    return readdirSync(root, { recursive: true, encoding: 'utf8' })
  } catch {
    return []
  }
}

/** Undefined for a folder, a broken link or a file that is too large or somebody else's. */
function textOf(file: string, maxSize: number): string | undefined {
  try {
    const stats = statSync(file)
    return stats.isFile() && stats.size <= maxSize ? readFileSync(file, 'utf8') : undefined
  } catch {
    return undefined
  }
}
