/** Shows what the gateway says now, every few seconds, unless somebody types, reads or confirms. */
const everyMs = 3000
const busy = 'main :is(input, select):focus, main :focus-visible, :popover-open'

const isBusy = () =>
  document.hidden || document.querySelector(busy) !== null || String(getSelection()) !== ''

async function refresh() {
  const main = document.querySelector('main')
  if (main.id === 'error') return
  try {
    const response = await fetch(location.href, { signal: AbortSignal.timeout(everyMs) })
    const page = new DOMParser().parseFromString(await response.text(), 'text/html')
    const next = page.querySelector('main')
    // The session has ended or begun, or a link from elsewhere came without the cookie.
    if (next.id !== main.id) document.body.replaceWith(page.body)
    else if (main.id !== 'sign-in' && !isBusy()) main.replaceChildren(...next.childNodes)
    document.body.classList.remove('lost')
  } catch {
    document.body.classList.add('lost')
  }
}

const address = new URL(location.href)
address.searchParams.delete('done')
history.replaceState(null, '', address)
setInterval(() => void refresh(), everyMs)
if (document.querySelector('#sign-in') !== null) void refresh()
