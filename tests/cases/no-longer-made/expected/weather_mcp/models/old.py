print("edited")
