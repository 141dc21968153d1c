#error "Wine has this header, and Microsoft has none"
