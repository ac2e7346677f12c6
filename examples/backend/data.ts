/** What the example back-end knows: its accounts, its people, its notices and its orders, in its own words. */

interface Account {
  readonly uid: string
  readonly loginName: string
  readonly displayName: string
  readonly roles: readonly string[]
  readonly jobTitle: string
  readonly team: string
}

export interface Caller {
  readonly uid: string
  readonly loginName: string
  readonly roles: readonly string[]
}

interface Notice {
  readonly noticeId: string
  readonly subject: string
  readonly body: string
  /** ISO 8601. */
  readonly createdAt: string
  readonly kind: 'notification' | 'message' | 'event'
  readonly isRead: boolean
  /** A data URI, or nothing. */
  readonly icon: string
  readonly tag: string
  readonly state: string
}

export interface Order {
  readonly orderNo: string
  readonly customer: string
  readonly amount: number
  readonly currency: string
  readonly state: 'new' | 'paid' | 'shipped' | 'returned'
  /** ISO 8601. */
  readonly placedAt: string
}

/** The password of both accounts: an example has no secrets. */
export const examplePassword = 'ant.design'

export const accounts: readonly Account[] = [
  {
    uid: '1003',
    loginName: 'carol',
    displayName: 'Carol Chen',
    roles: ['user'],
    jobTitle: 'Support specialist',
    team: 'Customer care'
  },
  {
    uid: '1004',
    loginName: 'dora',
    displayName: 'Dora Diaz',
    roles: ['admin'],
    jobTitle: 'Operations lead',
    team: 'Platform'
  }
]

/** Someone whom only the gateway knows (from its users file) gets a plain record: the gateway has vouched. */
export function personOf({ uid, loginName, roles }: Caller): Record<string, unknown> {
  const account = accounts.find(
    candidate => candidate.uid === uid && candidate.loginName === loginName
  )
  const isAdmin = roles.includes('admin')
  const mailbox = loginName.toLowerCase().replace(/[^a-z0-9._-]/g, '')
  return {
    uid,
    loginName,
    displayName: account?.displayName ?? loginName.charAt(0).toUpperCase() + loginName.slice(1),
    mail: mailbox === '' ? '' : `${mailbox}@example.com`,
    avatarUrl:
      account === undefined
        ? ''
        : picture(account.displayName.charAt(0), isAdmin ? '#5b4b9e' : '#1d6f6a'),
    roleName: isAdmin ? 'Admin' : 'User',
    jobTitle: account?.jobTitle ?? (isAdmin ? 'Administrator' : 'Team member'),
    team: account?.team ?? 'Head office'
  }
}

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour

export function exampleNotices(now: number): readonly Notice[] {
  const notice = (
    number: number,
    kind: Notice['kind'],
    age: number,
    isRead: boolean,
    subject: string,
    body: string,
    more: Partial<Notice> = {}
  ): Notice => ({
    noticeId: `N-${number}`,
    subject,
    body,
    createdAt: new Date(now - age).toISOString(),
    kind,
    isRead,
    icon: '',
    tag: '',
    state: '',
    ...more
  })
  return [
    notice(
      2048,
      'message',
      6 * minute,
      false,
      'Li Wei replied to your comment',
      'The refund for Northwind Traders went out this morning. Thanks for the nudge!',
      { icon: picture('L', '#8a4b2d') }
    ),
    notice(
      2047,
      'notification',
      42 * minute,
      false,
      'Three new orders are waiting',
      'They were placed over the phone and need a second pair of eyes before they ship.',
      { icon: picture('3', '#2b5fa8') }
    ),
    notice(
      2046,
      'event',
      3 * hour,
      false,
      'Maintenance of the order archive',
      'Reports of earlier years are read-only tonight between 22:00 and 23:30.',
      { tag: 'Tonight', state: 'todo' }
    ),
    notice(
      2041,
      'notification',
      7 * hour,
      false,
      'Weekly report is ready',
      'Sales are up 4 % on last week; returns stay below 1 %.'
    ),
    notice(
      2038,
      'message',
      26 * hour,
      true,
      'Mia Novak mentioned you',
      '“Could someone from customer care look at the address of Contoso?”',
      { icon: picture('M', '#6d3b7f') }
    ),
    notice(
      2035,
      'event',
      2 * day,
      true,
      'Code review of the billing import',
      'Assigned to Bruno, who started yesterday and expects two days.',
      { tag: 'In progress', state: 'processing' }
    ),
    notice(
      2027,
      'notification',
      5 * day,
      true,
      'Your password changes in 14 days',
      'You will get a reminder a week before.'
    ),
    notice(
      1990,
      'event',
      16 * day,
      true,
      'Stocktaking in the Hamburg warehouse',
      'Finished without differences. The protocol is in the archive.',
      { tag: 'Done', state: 'done' }
    )
  ]
}

export function exampleOrders(now: number): Order[] {
  const order = (
    orderNo: string,
    customer: string,
    amount: number,
    currency: string,
    state: Order['state'],
    age: number
  ): Order => ({
    orderNo,
    customer,
    amount,
    currency,
    state,
    placedAt: new Date(now - age).toISOString()
  })
  return [
    order('SO-10427', 'Northwind Traders', 1249.5, 'EUR', 'new', 35 * minute),
    order('SO-10426', 'Contoso Ltd', 318, 'USD', 'new', 2 * hour),
    order('SO-10425', 'Fabrikam GmbH', 7420.9, 'EUR', 'paid', 9 * hour),
    order('SO-10424', 'Wide World Importers', 86.25, 'GBP', 'shipped', day),
    order('SO-10423', 'Adventure Works', 2310, 'USD', 'shipped', 3 * day),
    order('SO-10422', 'Tailspin Toys', 59.9, 'EUR', 'returned', 8 * day)
  ]
}

function picture(letter: string, color: string): string {
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 40 40"><rect width="40" height="40" rx="20" fill="${color}"/><text x="20" y="26" font-family="sans-serif" font-size="17" fill="#fff" text-anchor="middle">${letter}</text></svg>`
  return `data:image/svg+xml;base64,${Buffer.from(svg).toString('base64')}`
}
