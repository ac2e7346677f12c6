import type { Config, LoadedConfig } from '../schema/config.ts'
import type { Path } from '../schema/node.ts'

/** @param how `also`: the other place of a clash in the same file, whose line the message then names */
export type Report = (
  path: Path,
  message: string,
  how?: { readonly warning?: boolean; readonly also?: Path }
) => void

export type CheckedConfig = Pick<
  Config,
  | 'folder'
  | 'bases'
  | 'gateway'
  | 'routes'
  | 'limits'
  | 'users'
  | 'authorities'
  | 'redisCa'
  | TlsPairs
> &
  Pick<LoadedConfig, 'named'>

type TlsPairs = 'serverTls' | 'opsTls'
