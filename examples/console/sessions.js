/** Your sessions: where you are signed in, and how to end that. */
import { call } from './api.js'
import { browserName } from './browser-name.js'
import { element, named, textOf, timeElement } from './dom.js'
import { reference, setBusy, setIdle } from './panels.js'
/** @import { Failure } from './api.js' */

const everywhere = 'Sign out everywhere else'

/**
 * Asked for when it is opened, so that nobody pays for what is not looked at.
 * @param {object} options
 * @param {AbortSignal} options.signal ends with the view
 * @param {(failure: Failure) => boolean} options.isSignedOut takes over if so
 */
export function sessionsPart({ signal, isSignedOut }) {
  const summary = element('summary', {}, element('h2', { id: 'sessions-title' }, 'Your sessions'))
  const problem = element('div', { ...named('sessions-error'), class: 'alert', role: 'alert' })
  const status = element('p', { class: 'hidden', role: 'status' })
  const content = element('div', { class: 'stack' })
  const part = element(
    'details',
    { ...named('sessions'), class: 'card part sessions' },
    summary,
    element('div', { class: 'content' }, problem, content, status)
  )
  part.addEventListener('toggle', () => {
    if (part.open) void load()
  })

  async function load() {
    problem.replaceChildren()
    if (content.childElementCount === 0) {
      content.replaceChildren(element('p', { class: 'loading' }, 'Loading sessions…'))
    }
    const answer = await call('/api/session/list', { signal })
    if (signal.aborted) return
    if (answer.ok) return show(Array.isArray(answer.data) ? answer.data : [])
    if (isSignedOut(answer)) return
    content.replaceChildren()
    const again = element(
      'button',
      { ...named('sessions-retry'), type: 'button', class: 'quiet' },
      'Try again'
    )
    again.addEventListener('click', () => {
      summary.focus()
      void load()
    })
    problem.replaceChildren(element('p', {}, answer.message, ...reference(answer)), again)
  }

  function show(/** @type {Record<string, unknown>[]} */ sessions) {
    const sorted = sessions.toSorted(
      (a, b) =>
        Number(b['current'] === true) - Number(a['current'] === true) ||
        textOf(b['lastUsedAt']).localeCompare(textOf(a['lastUsedAt']))
    )
    const list = element(
      'ul',
      { 'class': 'session-list', 'aria-labelledby': 'sessions-title' },
      ...sorted.map(item)
    )
    content.replaceChildren(
      list,
      ...(sorted.some(({ current }) => current !== true)
        ? [
            closeButton({ others: true }, everywhere, {
              ...named('sessions-close-others'),
              class: 'quiet close-others'
            })
          ]
        : [])
    )
  }

  function item(
    /** @type {Record<string, unknown>} */ { id, startedAt, lastUsedAt, address, agent, current }
  ) {
    const name = browserName(textOf(agent))
    const nameId = `session-${textOf(id)}`
    return element(
      'li',
      {
        'data-testid': 'session-item',
        'class': 'session',
        'aria-current': current === true && 'true'
      },
      element(
        'div',
        { class: 'session-text' },
        element(
          'h3',
          {},
          element('span', { id: nameId, title: textOf(agent) }, name),
          current === true && element('span', { class: 'badge' }, 'This session')
        ),
        element(
          'p',
          { class: 'muted' },
          'Started ',
          timeElement(startedAt),
          ' · last used ',
          timeElement(lastUsedAt)
        ),
        textOf(address) !== '' && element('p', { class: 'muted' }, 'From ', textOf(address))
      ),
      current !== true &&
        closeButton({ id }, 'Sign out', {
          'data-testid': 'session-close',
          'class': 'quiet',
          'aria-describedby': nameId
        })
    )
  }

  /**
   * @param {object} which
   * @param {string} label
   * @param {Record<string, string>} attributes
   */
  function closeButton(which, label, attributes) {
    const button = element('button', { type: 'button', ...attributes }, label)
    button.addEventListener('click', () => {
      if (button.getAttribute('aria-disabled') !== 'true') void close(button, which, label)
    })
    return button
  }

  /**
   * @param {HTMLButtonElement} button
   * @param {object} which
   * @param {string} label
   */
  async function close(button, which, label) {
    problem.replaceChildren()
    status.replaceChildren()
    setBusy(button, 'Signing out…')
    const answer = await call('/api/session/close', { method: 'POST', json: which, signal })
    if (signal.aborted) return
    setIdle(button, label)
    if (!answer.ok) {
      if (!isSignedOut(answer)) problem.replaceChildren(answer.message, ...reference(answer))
      return
    }
    await load()
    if (signal.aborted) return
    const closed = Number(answer.data?.closed)
    status.replaceChildren(
      closed === 1 ? 'One session was signed out.' : `${closed} sessions were signed out.`
    )
    // The pressed button is gone.
    summary.focus()
  }

  return part
}
