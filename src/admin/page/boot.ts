/** Runs before the first paint: sets the chosen theme and the language of the document. */
{
  const read = (key: string): string | null => {
    try {
      return localStorage.getItem(key)
    } catch {
      return null
    }
  }
  const theme = read('ops.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset['theme'] = theme
  const language = read('ops.language') ?? navigator.language
  document.documentElement.lang = language.toLowerCase().startsWith('zh') ? 'zh-CN' : 'en'
}
