/** The errors of a sign-in that did not succeed. */
import { type ErrorKind, kind } from './error-kind.ts'

export const signInErrorKinds = {
  'login.too-many': kind(
    409,
    2,
    'You are signed in at too many places. Please sign out at one of them first.',
    '您同时登录的会话过多,请先退出其中一个。'
  ),
  'login.refused': kind(401, 2, 'The user name or the password is wrong.', '用户名或密码错误。'),
  'login.locked': kind(
    429,
    2,
    'Too many failed sign-ins for this account. Please wait, then try again.',
    '该账户登录失败次数过多,请稍后再试。'
  ),
  'login.challenge': kind(
    400,
    2,
    'The verification code is wrong or has expired. Please try again.',
    '验证码错误或已失效,请重试。'
  ),
  'login.blocked': kind(
    403,
    2,
    'This account is blocked. Please ask your administrator.',
    '该账户已被停用,请联系管理员。'
  ),
  'login.expired-password': kind(
    403,
    2,
    'Your password has expired. Please change it, then sign in again.',
    '密码已过期,请修改密码后重新登录。'
  )
} as const satisfies Record<string, ErrorKind>
