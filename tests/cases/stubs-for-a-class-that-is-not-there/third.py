from elsewhere import Third
