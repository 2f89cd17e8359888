// Before anything is painted: the colours the member chose, where that is not what the system says.
try {
  const theme = localStorage.getItem('lethe.theme')
  if (theme === 'light' || theme === 'dark') document.documentElement.dataset.theme = theme
} catch {}
