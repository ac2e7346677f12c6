/** The errors of the operators' listener. */
import { kind } from './error-kind.ts'

export const opsErrorKinds = {
  'ops.host': kind(
    421,
    2,
    'The operators’ listener has no such name. Call it by its address, or list the name in ' +
      'ops.hosts.',
    '运维端口没有此名称。请使用其地址访问,或将该名称加入 ops.hosts。'
  ),
  'ops.secret': kind(
    401,
    2,
    'This is answered only with the operators’ secret (Authorization: Bearer …).',
    '此请求需要运维密钥(Authorization: Bearer …)。'
  ),
  'ops.session': kind(
    401,
    2,
    'Please sign in to the operators’ page, or send the operators’ secret.',
    '请登录运维页面,或提供运维密钥。'
  ),
  'ops.role': kind(
    403,
    2,
    'This account is no operator: its source or its role is not among those of ops.role.',
    '该账户不是运维人员:其来源或角色未列入 ops.role。'
  ),
  'ops.origin': kind(
    403,
    2,
    'Requests that change something are taken from the operators’ own page only.',
    '仅接受来自运维页面本身的更改请求。'
  ),
  'ops.ledger': kind(
    503,
    2,
    'The audit ledger cannot be written, so nothing was changed. Make room on its disk, then ' +
      'try again.',
    '审计日志无法写入,因此未作任何更改。请清理磁盘空间后重试。'
  ),
  'ops.redis': kind(
    503,
    2,
    'The store that all replicas share does not answer, so nothing was changed. Try again soon.',
    '共享存储没有响应，因此未作任何更改。请稍后重试。'
  )
} as const
