/** The ops page: everything below `#page`. */
import { h, render } from 'preact'
import { Page } from './shell.ts'

const place = document.getElementById('page')
if (place !== null) {
  place.replaceChildren()
  render(h(Page, null), place)
}
