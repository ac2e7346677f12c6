/** A caller of a limit, in the language of the page. */
import type { NamedCaller } from '../api-types.ts'
import { t } from '../i18n.ts'
import { isolated } from '../plain-text.ts'

export function callerText({ whom, caller }: NamedCaller): string {
  if (caller === undefined) return isolated(whom)
  const { account, user, source = '', session, address } = caller
  const parts = [
    account !== undefined && t('caller.account', { account }),
    user !== undefined && t('caller.user', { user, source }),
    session !== undefined && t('caller.session', { session }),
    address !== undefined && t('caller.address', { address })
  ]
  return parts.filter(part => part !== false).join(', ')
}
