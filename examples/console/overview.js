/** The overview: who you are, your notices, and the orders if your role allows. Each part loads and fails on its own. */
import { call } from './api.js'
import { element, initialsOf, moneyText, named, picture, textOf, timeElement } from './dom.js'
import { heading, sectionError } from './panels.js'
import { sessionsPart } from './sessions.js'
/** @import { Failure } from './api.js' */

/**
 * @typedef {object} Options
 * @property {Record<string, unknown>} profile
 * @property {AbortSignal} signal ends with the view
 * @property {(failure: Failure) => boolean} isSignedOut takes over if so
 */

const typeNames = new Map([
  ['notification', 'Notification'],
  ['message', 'Message'],
  ['event', 'Event']
])

export function overviewContent(/** @type {Options} */ options) {
  const name = nameOf(options.profile)
  return element(
    'div',
    { class: 'overview' },
    element('div', { class: 'greeting' }, heading(`${greeting()}, ${name}`)),
    profileCard(options.profile, name),
    part(options, 'notices', 'Notices', '/api/notices', noticeList),
    part(options, 'orders', 'Orders', '/api/orders', orderTable),
    sessionsPart(options)
  )
}

export const nameOf = (/** @type {Record<string, unknown>} */ { name, username, userid }) =>
  textOf(name) || textOf(username) || textOf(userid) || 'there'

function greeting() {
  const hour = new Date().getHours()
  return hour < 5
    ? 'Good evening'
    : hour < 12
      ? 'Good morning'
      : hour < 18
        ? 'Good afternoon'
        : 'Good evening'
}

/**
 * @param {Record<string, unknown>} profile
 * @param {string} name
 */
function profileCard(profile, name) {
  const role = textOf(profile['role']) || textOf(profile['access'])
  const rows = [
    ['Email', profile['email']],
    ['Title', profile['title']],
    ['Group', profile['group']]
  ]
    .map(([label, value]) => ({ label: String(label), value: textOf(value) }))
    .filter(({ value }) => value !== '')
  return element(
    'section',
    { ...named('profile'), 'class': 'card profile', 'aria-labelledby': 'profile-name' },
    element(
      'div',
      { class: 'person' },
      picture(profile['avatar'], initialsOf(name), 'avatar'),
      element(
        'div',
        {},
        element('h2', named('profile-name'), name),
        role !== '' && element('p', { ...named('profile-role'), class: 'badge role' }, role)
      )
    ),
    element(
      'dl',
      {},
      ...rows.map(({ label, value }) =>
        element('div', {}, element('dt', {}, label), element('dd', {}, value))
      )
    )
  )
}

/**
 * A section that asks for a list and shows it.
 * @param {Options} options
 * @param {string} name
 * @param {string} title
 * @param {string} path
 * @param {(items: Record<string, unknown>[], titleId: string) => Node[]} render
 */
function part({ signal, isSignedOut }, name, title, path, render) {
  const titleId = `${name}-title`
  const content = element('div', { class: 'content' })
  const load = async () => {
    content.setAttribute('aria-busy', 'true')
    content.replaceChildren(
      element('p', { class: 'loading', role: 'status' }, `Loading ${title.toLowerCase()}…`)
    )
    const answer = await call(path, { signal })
    if (signal.aborted) return
    content.removeAttribute('aria-busy')
    if (answer.ok) {
      return content.replaceChildren(
        ...render(Array.isArray(answer.data) ? answer.data.filter(isRecord) : [], titleId)
      )
    }
    if (isSignedOut(answer)) return
    content.replaceChildren(
      answer.status === 403
        ? forbidden(name, answer)
        : sectionError(name, answer, () => {
            void reload()
          })
    )
  }
  const reload = async () => {
    await load()
    // The pressed button is gone.
    if (!signal.aborted) (content.querySelector('button') ?? section.querySelector('h2'))?.focus()
  }
  const section = element(
    'section',
    { 'class': `card part ${name}`, 'aria-labelledby': titleId },
    element('h2', { id: titleId, tabindex: -1 }, title),
    content
  )
  void load()
  return section
}

/** @returns {value is Record<string, unknown>} */
const isRecord = (/** @type {unknown} */ value) => typeof value === 'object' && value !== null

/** A role that may not see this is no error: nothing is broken. */
function forbidden(/** @type {string} */ name, /** @type {Failure} */ failure) {
  return element('p', { ...named(`${name}-forbidden`), class: 'note' }, failure.message)
}

function noticeList(
  /** @type {Record<string, unknown>[]} */ notices,
  /** @type {string} */ titleId
) {
  if (notices.length === 0) {
    return [element('p', { ...named('notices'), class: 'note' }, 'Nothing new.')]
  }
  const unread = notices.filter(({ read }) => read !== true).length
  return [
    element(
      'p',
      { ...named('notices-unread'), class: 'muted' },
      unread === 0 ? 'All read' : `${unread} unread of ${notices.length}`
    ),
    element(
      'ul',
      { ...named('notices'), 'class': 'notice-list', 'aria-labelledby': titleId },
      ...notices.map(noticeItem)
    )
  ]
}

function noticeItem(
  /** @type {Record<string, unknown>} */ { avatar, title, description, datetime, type, read, extra }
) {
  const kind = typeNames.has(textOf(type)) ? textOf(type) : 'notification'
  return element(
    'li',
    {
      'data-testid': 'notice',
      'data-type': kind,
      'class': read === true ? 'notice' : 'notice unread'
    },
    picture(avatar, typeNames.get(kind)?.charAt(0) ?? '', `icon ${kind}`),
    element(
      'div',
      { class: 'notice-text' },
      element(
        'h3',
        {},
        read !== true && element('span', { class: 'hidden' }, 'Unread: '),
        textOf(title)
      ),
      textOf(description) !== '' && element('p', {}, textOf(description)),
      element(
        'p',
        { class: 'meta' },
        element('span', { class: `badge ${kind}` }, typeNames.get(kind) ?? ''),
        textOf(extra) !== '' && element('span', { class: 'badge' }, textOf(extra)),
        timeElement(datetime)
      )
    )
  )
}

function orderTable(
  /** @type {Record<string, unknown>[]} */ orders,
  /** @type {string} */ titleId
) {
  if (orders.length === 0) {
    return [element('p', { ...named('orders'), class: 'note' }, 'No orders yet.')]
  }
  // The roles are said, since narrow screens lay the rows out anew, and some browsers then forget that this is a table.
  const cell = (/** @type {string} */ className, /** @type {Node | string} */ content) =>
    element('td', { role: 'cell', class: className }, content)
  const rows = orders.map(({ orderNo, customer, amount, currency, state, placedAt }) =>
    element(
      'tr',
      { 'role': 'row', 'data-testid': 'order' },
      element('th', { scope: 'row', role: 'rowheader' }, textOf(orderNo)),
      cell('customer', textOf(customer)),
      cell('number', moneyText(amount, currency)),
      cell('state', textOf(state) === '' ? '' : element('span', { class: 'badge' }, textOf(state))),
      cell('placed', timeElement(placedAt))
    )
  )
  const headers = ['Order', 'Customer', 'Amount', 'State', 'Placed'].map(label =>
    element(
      'th',
      { scope: 'col', role: 'columnheader', class: label === 'Amount' ? 'number' : undefined },
      label
    )
  )
  const table = element(
    'table',
    { ...named('orders'), 'role': 'table', 'aria-labelledby': titleId },
    element('thead', { role: 'rowgroup' }, element('tr', { role: 'row' }, ...headers)),
    element('tbody', { role: 'rowgroup' }, ...rows)
  )
  // Scrolls sideways where it does not fit, also by keyboard.
  return [
    element(
      'div',
      { 'class': 'scroller', 'role': 'group', 'tabindex': 0, 'aria-labelledby': titleId },
      table
    )
  ]
}
