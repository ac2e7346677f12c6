/** Light or dark: as the system says, or as chosen. */
import { createStore, readSetting, writeSetting } from './store.ts'

export type Theme = 'system' | 'light' | 'dark'

const system = matchMedia('(prefers-color-scheme: dark)')

function chosenTheme(): Theme {
  const chosen = readSetting('theme')
  return chosen === 'light' || chosen === 'dark' ? chosen : 'system'
}

export const themeChoice = createStore<Theme>(chosenTheme())

function shownTheme(): 'light' | 'dark' {
  const choice = themeChoice.get()
  if (choice !== 'system') return choice
  return system.matches ? 'dark' : 'light'
}

/** The theme on the screen. */
export const theme = createStore(shownTheme())

system.addEventListener('change', () => theme.set(shownTheme()))

export function setTheme(choice: Theme): void {
  themeChoice.set(choice)
  writeSetting('theme', choice === 'system' ? undefined : choice)
  if (choice === 'system') delete document.documentElement.dataset['theme']
  else document.documentElement.dataset['theme'] = choice
  theme.set(shownTheme())
}
