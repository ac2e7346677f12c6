/** Making elements, and writing times for people. */

/** Data only ever becomes text or an attribute's value, never markup. `false` leaves one out. */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== false) made.setAttribute(name, value === true ? '' : String(value))
  }
  made.append(...children)
  return made
}

/** Both, since scripts and tests look for the one or the other. */
export const named = name => ({ 'id': name, 'data-testid': name })

/** A button that works on one press at a time, and says so. */
export function button(name, label, act, more = {}) {
  const made = element('button', { ...named(name), type: 'button', ...more }, label)
  made.addEventListener('click', async event => {
    event.preventDefault()
    // Not `disabled`: that would take the focus away from whoever pressed it.
    if (made.getAttribute('aria-disabled') === 'true') return
    made.setAttribute('aria-disabled', 'true')
    await act()
    made.removeAttribute('aria-disabled')
  })
  return made
}

/** A failure in words, with the request id, where there is one. */
export function failureText({ message, requestId, retryAfter }) {
  const wait = retryAfter === undefined ? '' : ` You can try again in ${retryAfter} s.`
  const id = requestId === '' ? [] : [' ', element('small', {}, `Request id ${requestId}`)]
  return [message + wait, ...id]
}

const clockTime = new Intl.DateTimeFormat('en', { timeStyle: 'short' })
export const clockText = moment => clockTime.format(moment)

const dateTime = new Intl.DateTimeFormat('en', { dateStyle: 'medium', timeStyle: 'short' })
export const dateText = text => dateTime.format(new Date(text))
