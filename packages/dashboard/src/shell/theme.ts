export type Theme = 'system' | 'light' | 'dark'

const place = 'lethe.theme'

export function chosenTheme(): Theme {
  const theme = read(place)
  return theme === 'light' || theme === 'dark' ? theme : 'system'
}

export function chooseTheme(theme: Theme): void {
  if (theme === 'system') {
    delete document.documentElement.dataset.theme
    localStorage.removeItem(place)
  } else {
    document.documentElement.dataset.theme = theme
    localStorage.setItem(place, theme)
  }
}

/** What this browser remembers for the dashboard: settings of looks, and no data. */
export function read(name: string): string | null {
  try {
    return localStorage.getItem(name)
  } catch {
    return null
  }
}

const shortcuts = 'lethe.shortcuts'

/** Single-key shortcuts can be switched off: they get in the way of speech input. */
export function areShortcutsOn(): boolean {
  return read(shortcuts) !== 'off'
}

export function switchShortcuts(on: boolean): void {
  if (on) localStorage.removeItem(shortcuts)
  else localStorage.setItem(shortcuts, 'off')
}
